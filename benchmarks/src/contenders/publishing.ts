/** Publishing through a client whose confirmations are promises. */
import type { Meter } from "../Meter.ts"
import type { Publish } from "./jobs.ts"

/** Sends all messages, this many at a time; a confirmation starts the next. */
export const publishing = async (
  { inFlight, messages, warmUp }: Pick<Publish, "inFlight" | "messages" | "warmUp">,
  meter: Meter,
  send: () => Promise<unknown>
): Promise<void> => {
  let left = messages + warmUp
  const line = async (): Promise<void> => {
    while (left-- > 0) {
      await send()
      meter.tick()
    }
  }
  meter.begin()
  await Promise.all(Array.from({ length: inFlight }, line))
}
