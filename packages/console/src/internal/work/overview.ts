/** The queues of all brokers at one moment. A broker that does not answer in time hides no other. */
import { Delay, QueueStatus } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Connection } from "./connections.ts"
import { Trouble } from "./connections.ts"

/** A queue; without a status where its broker did not answer. */
export interface QueueView {
  readonly queue: string
  readonly status: QueueStatus.QueueStatus | undefined
}

/** A broker and its queues. */
export interface BrokerView {
  readonly name: string
  readonly queues: ReadonlyArray<QueueView>
  /** Why it does not answer. */
  readonly trouble: string | undefined
  /** Why parts of it do not answer. */
  readonly missing: ReadonlyArray<string>
  /** Milliseconds that it took. */
  readonly took: number
}

/** Queues of a broker that are asked for at a time. */
const atOnce = 8

/** Asks a broker for all of its queues. */
const ofBroker = (connection: Connection, timeout: number): Effect.Effect<BrokerView> =>
  Effect.gen(function* () {
    const { mask, name, queues, use } = connection
    const begun = yield* Clock.currentTimeMillis
    const asked = use((broker) =>
      Effect.forEach(queues, ({ name, retry }) => QueueStatus.of(broker, { queue: name, retry }), {
        concurrency: atOnce
      })
    )
    const late = () => new Trouble({ broker: name, message: `no answer within ${Delay.format(timeout)}` })
    const limited = Effect.timeoutOrElse(asked, { duration: timeout, orElse: () => Effect.fail(late()) })
    const result = yield* Effect.result(limited)
    const statuses = Result.isSuccess(result) ? result.success : []
    return {
      name,
      queues: queues.map(({ name }, index) => ({ queue: name, status: statuses[index] })),
      trouble: Result.isFailure(result) ? result.failure.message : undefined,
      missing: [...new Set(statuses.flatMap(({ missing = [] }) => missing.map(({ message }) => mask(message))))],
      took: (yield* Clock.currentTimeMillis) - begun
    }
  })

/** Asks all brokers side by side. */
export const of = (connections: Iterable<Connection>, timeout: number): Effect.Effect<ReadonlyArray<BrokerView>> =>
  Effect.forEach(connections, (each) => ofBroker(each, timeout), { concurrency: "unbounded" })
