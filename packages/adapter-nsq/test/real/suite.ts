/** The conformance suite on real nsqd. */
import { start, type NsqBroker } from "@requeue/brokers"
import { Case, Cases, Suite } from "@requeue/conformance"
import * as Result from "effect/Result"
import { afterAll, describe, test, vi } from "vitest"
import * as Capabilities from "../../src/internal/capabilities.ts"
import { NsqOptions } from "../../src/index.ts"
import { layer, type Way } from "./harness.ts"

const capabilities = Capabilities.make(Result.getOrThrow(NsqOptions.decode()), {
  maxReqTimeout: 3_600_000,
  maxMsgSize: 1_048_576,
  maxBodySize: 5_242_880,
  msgTimeout: 1000,
  maxMsgTimeout: 900_000
})

const isAlone = (each: Case.Case): boolean => Case.isDisruptive(each, capabilities)

const open = async (nodes: number): Promise<NsqBroker> => {
  const broker = await start("nsq", { nodes, flags: { "queue-scan-selection-count": 1000 } })
  afterAll(() => broker.dispose())
  return broker
}

/**
 * The cases side by side: most of their time, they wait. Those that cut connections or restart nsqd have theirs to
 * themselves, one after the other. Returns the options for further cases on the same nsqd.
 */
export const register = async (
  name: string,
  nodes: number,
  way: Omit<Way, "queues">,
  lateness: "judged" | "ignored"
): Promise<Suite.Options> => {
  // The harness cuts connections and restarts nsqd.
  vi.stubEnv("REQUEUE_NSQ_URL", "")
  const [many, one] = [await open(nodes), await open(nodes)]
  const quiet = Cases.cases.filter((each) => !isAlone(each))
  // A process that stands still for longer than this loses its messages. Where connections are cut, nsqd gives theirs to
  // nobody else before that time is over.
  const messageTimeout = 5000
  Suite.register(
    { describe: describe.concurrent, test: test.concurrent, afterAll },
    {
      name: `nsq ${many.version}${name}`,
      layer: layer(many, { ...way, options: { messageTimeout }, queues: quiet.length + 10 }),
      lateness,
      cases: quiet
    }
  )
  const disruptive = Cases.cases.filter(isAlone)
  Suite.register(
    { describe, test, afterAll },
    {
      name: `nsq ${one.version}${name}, disturbed`,
      layer: layer(one, { ...way, queues: disruptive.length + 10 }),
      lateness,
      cases: disruptive
    }
  )
  return { name: "nsq", layer: layer(many, { ...way, queues: 3 }), lateness }
}
