/** Helpers of the tests of traps: another client, and consumers that write down their runs. */
import { Consumer, type Handler } from "@requeue/core"
import { connect, type ConfirmChannel } from "amqplib"
import * as Effect from "effect/Effect"
import { now } from "../../world.ts"

/** Asks the server as another client does, by the driver alone. */
export const raw = async <A>(url: string, run: (channel: ConfirmChannel) => Promise<A>): Promise<A> => {
  const model = await connect(url)
  model.on("error", () => {})
  const channel = await model.createConfirmChannel()
  channel.on("error", () => {})
  try {
    const answer = await run(channel)
    // The last publications would be lost with the connection.
    await channel.waitForConfirms().catch(() => {})
    return answer
  } finally {
    await model.close().catch(() => {})
  }
}

/** Takes messages, and ends with its connection. */
export const takeAndLeave = (url: string, queue: string, count: number) =>
  raw(url, async (channel) => {
    await channel.prefetch(count)
    await new Promise<void>((resume) => {
      let taken = 0
      void channel.consume(queue, () => (++taken === count ? resume() : undefined))
    })
  })

export interface Run {
  readonly id: string
  readonly attempts: number
  /** Monotonic milliseconds since the epoch. */
  readonly at: number
}

/** A consumer that writes down its runs. */
export const consume = (
  queue: string,
  runs: Array<Run>,
  options: Consumer.Options,
  handler: (message: Parameters<Handler.MessageHandler<string>>[0]) => unknown = () => {}
) =>
  Consumer.start<string>(queue, options, (message) => {
    runs.push({ id: message.id, attempts: message.attempts, at: now() })
    return handler(message) as void
  })

/** A handler's failure. */
export const no = () => Effect.fail(new Error("no"))
