/** The contract on the real nsqd. */
import { NsqOptions } from "@requeue/adapter-nsq"
import { Driver, type HttpInterface } from "@requeue/adapter-nsq/driver"
import { type NsqBroker, start } from "@requeue/brokers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { afterAll, vi } from "vitest"
import * as Contract from "../contract/Contract.ts"
import { type Part, parts, type Server } from "../nsq/contract.ts"

// The rows restart nsqd, and need its flags.
vi.stubEnv("REQUEUE_NSQ_URL", "")

const flagsOf = ({ flags }: Part) => {
  const { maxBodySize, maxMsgSize, maxMsgTimeout, maxRdyCount, maxReqTimeout, memQueueSize, msgTimeout } = flags
  return {
    "max-body-size": maxBodySize,
    "max-msg-size": maxMsgSize,
    "max-msg-timeout": `${maxMsgTimeout}ms`,
    "max-rdy-count": maxRdyCount,
    "max-req-timeout": `${maxReqTimeout}ms`,
    "msg-timeout": `${msgTimeout}ms`,
    "queue-scan-selection-count": 1000,
    ...(memQueueSize === undefined ? {} : { "mem-queue-size": memQueueSize })
  }
}

const ofHttp = (host: string, port: number): HttpInterface => ({ url: `http://${host}:${port}`, tls: {} })

const serverOf = (broker: NsqBroker): Server => {
  const [node] = broker.nodes
  const addressOf = (host: string) => ({ host, port: node!.port, http: ofHttp(host, node!.port + 1) })
  return {
    driver: Context.get(Context.empty(), Driver),
    settings: Result.getOrThrow(NsqOptions.decode({})),
    address: addressOf("127.0.0.1"),
    alias: addressOf("localhost"),
    lookupd: ofHttp("127.0.0.1", Number(new URL(broker.managementUrl!).port)),
    restart: (how) =>
      Effect.promise(async () => {
        await (how === "kill" ? node!.kill() : node!.stop())
        await node!.start()
      })
  }
}

const opened = (part: Part) => start("nsq", { flags: flagsOf(part) })

const shared = async (part: Part): Promise<Effect.Effect<Server>> => {
  const broker = await opened(part)
  afterAll(() => broker.dispose())
  return Effect.succeed(serverOf(broker))
}

const own = (part: Part) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => opened(part)),
      (broker) => Effect.promise(() => broker.dispose())
    ),
    serverOf
  )

for (const part of parts) {
  const open = part.restarts ? own(part) : await shared(part)
  Contract.register(part.rows, { name: `nsqd ${part.name}`, open, isVirtual: false })
}
