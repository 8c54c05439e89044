/** Browses the delayed messages of a queue. */
import { type Broker, BrokerError, type Delivery, Failure, type RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"

/** How far browsing has come. */
export interface Browsed {
  /** The number of messages of the queue that the broker has shown. */
  readonly browsed: number
  /** Whether the broker has shown every message that was delayed during the whole call. */
  readonly isWhole: boolean
}

/** The result of a purge. */
export interface Purged extends Browsed {
  /** The number of removed messages; in a dry run, of those that would be removed. */
  readonly removed: number
}

const unsupported = (
  { capabilities: { broker } }: Pick<Broker.Service, "capabilities">,
  queue: string
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker,
    operation: "delayed",
    queue,
    reason: "Unsupported",
    detail: "the broker cannot show messages that wait for their delay",
    remedy: "Wait until the messages are due. requeue status shows their number if the broker counts them"
  })

/** The most messages to browse, in all and per page. */
const [browseLimit, pageSize] = [100_000, 1000]

/** Shows every message, and removes those for which `removes` returns true. An error that it throws ends the call. */
export const browse = (
  broker: Pick<Broker.Service, "admin" | "capabilities">,
  queue: string,
  retry: RetryPolicy.RetryPolicy,
  removes: (message: Broker.BrowsedMessage) => boolean
): Effect.Effect<Purged, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    if (broker.capabilities.delayedMessages !== true) return yield* unsupported(broker, queue)
    const browser = yield* broker.admin.browse({ queue, from: "delayed", retry, limit: browseLimit })
    let [browsed, removed] = [0, 0]
    while (true) {
      const page = yield* browser.next(pageSize)
      if (page.length === 0) return { browsed, removed, isWhole: browser.browsed().isWhole }
      browsed += page.length
      const leaving: Array<Delivery.Delivery> = []
      let thrown: { readonly error: unknown } | undefined
      for (const message of page) {
        try {
          if (removes(message)) leaving.push(message.delivery)
        } catch (error) {
          thrown = { error }
          break
        }
      }
      const failures = leaving.length === 0 ? [] : yield* browser.remove(leaving)
      removed += leaving.length - failures.length
      // A message that became due meanwhile is delivered.
      const failure = failures.find(({ fate }) => fate !== "lost")
      if (failure !== undefined) return yield* failure.error
      if (thrown !== undefined) {
        return yield* Effect.die(removed === 0 ? thrown.error : stopped(thrown.error, queue, removed))
      }
    }
  }).pipe(Effect.scoped)

/** Returns the error of a purge whose filter threw. */
const stopped = (cause: unknown, queue: string, removed: number): Error => {
  const { message, name } = Failure.summarize(cause)
  const end = `the filter threw ${name}: ${message}, when ${removed} delayed messages of ${queue} were removed`
  return new Error(`DelayedMessages.purge: ${end}. Fix the filter, then purge again to go on`, { cause })
}
