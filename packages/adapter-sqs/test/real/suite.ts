/** The conformance suite on one kind of server. */
import { proxy, start, strictSqs } from "@requeue/brokers"
import { Case, Cases, Suite } from "@requeue/conformance"
import * as Result from "effect/Result"
import { afterAll, describe, test } from "vitest"
import * as Capabilities from "../../src/internal/capabilities.ts"
import { SqsOptions } from "../../src/index.ts"
import { layer, options } from "./harness.ts"

/** A server behind the strict proxy, and a link to it that can be cut. */
export const open = async (version: string, lateness: number) => {
  const broker = await start("sqs", { version })
  const strict = await strictSqs(broker)
  const link = await proxy(Number(new URL(strict.url).port))
  afterAll(async () => {
    await link.close()
    await strict.close()
    await broker.dispose()
  })
  const proxied = new URL(strict.url)
  proxied.port = String(link.port)
  return {
    name: `sqs ${broker.version}`,
    url: broker.url,
    proxied: proxied.href,
    cutConnections: link.cut,
    strict,
    lateness,
    settleTime: 50,
    createTime: 0
  }
}

export const capabilities = Capabilities.make(
  Result.getOrThrow(SqsOptions.decode({ url: "sqs://eu-west-1", ...options }))
)

/** Calls fail for one queue only, and the connection stays. */
const isAlone = (each: Case.Case): boolean => Case.isDisruptive(each, capabilities, { failNext: () => true })

/**
 * The cases side by side: nearly all of their time, they wait for whole seconds to pass. Those that cut connections have
 * a server to themselves, one after the other. Returns the options for further cases on the same server.
 *
 * @param bound milliseconds by which a due message may be late on this server, with so many at once
 */
export const register = async (
  version: string,
  bound: number,
  lateness: "judged" | "ignored"
): Promise<Suite.Options> => {
  const [many, one] = [await open(version, bound), await open(version, bound)]
  // A call that gets no answer ends before the lease does. On a machine that is busy, it has as long as the lease.
  const requestTimeout = lateness === "ignored" ? options.requestTimeout : options.visibilityTimeout / 2
  const { cutConnections: _, ...uncut } = { ...many, requestTimeout }
  // A server on a busy machine may take long to answer. Only where calls fail, cases wait until they have.
  const patient = { ...uncut, requestTimeout: lateness === "ignored" ? 60_000 : options.requestTimeout }
  const beside = Cases.cases.filter((each) => !isAlone(each))
  const isFailing = (each: Case.Case): boolean => Case.isDisruptive(each, capabilities)
  const concurrent = { describe: describe.concurrent, test: test.concurrent, afterAll }
  Suite.register(concurrent, {
    name: many.name,
    layer: layer(patient),
    lateness,
    cases: beside.filter((each) => !isFailing(each))
  })
  Suite.register(concurrent, {
    name: `${many.name}, failing calls`,
    layer: layer(uncut),
    lateness,
    cases: beside.filter(isFailing)
  })
  Suite.register(
    { describe, test, afterAll },
    {
      name: `${one.name}, connections cut`,
      layer: layer({ ...one, requestTimeout }),
      lateness,
      cases: Cases.cases.filter(isAlone)
    }
  )
  return { name: many.name, layer: layer(patient), lateness }
}
