/** The contract on the simulated servers. */
import { NsqOptions } from "@requeue/adapter-nsq"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Contract from "../contract/Contract.ts"
import * as Host from "../../src/servers/Host.ts"
import { Driver, Lookupd, Network, Nsqd } from "../../src/servers/nsq/index.ts"
import { type Part, parts, type Server } from "./contract.ts"

const tls = {}
const addressOf = (host: string) => ({ host, port: 4150, http: { url: `http://${host}:4151`, tls } })

const open = ({ flags }: Part) =>
  Effect.gen(function* () {
    const host = yield* Random.withSeed(Host.make, "nsq")
    const network = Network.make(host)
    const nsqd = Nsqd.make(host, { name: "nsqd", flags })
    for (const name of ["nsqd", "other"]) network.add(nsqd, `${name}:4150`, `http://${name}:4151`)
    const lookupd = Lookupd.make(host, [{ nsqd, host: "nsqd", port: 4150, httpPort: 4151 }])
    network.addLookupd(lookupd, "http://lookupd:4161")
    const server: Server = {
      driver: Driver.make(network),
      settings: Result.getOrThrow(NsqOptions.decode({})),
      address: addressOf("nsqd"),
      alias: addressOf("other"),
      lookupd: { url: "http://lookupd:4161", tls },
      restart: (how) =>
        Effect.andThen(
          Effect.sync(() => nsqd.restart(how, 300)),
          Effect.sleep(301)
        )
    }
    return server
  })

for (const part of parts) {
  Contract.register(part.rows, { name: `simulated nsqd 1.3.0 ${part.name}`, open: open(part), isVirtual: true })
}
