/** Groups of messages, whose order a FIFO queue keeps. */
import type { CopyLife, Lives, Settling } from "./Lives.ts"

/** The copies of a message's group that were stored before its copy, and that are still in the queue at a moment. */
export const earlierIn = ({ copies, scenario }: Lives, copy: CopyLife, index: number): ReadonlyArray<CopyLife> => {
  const { message, stored } = copy
  if (scenario.fifo === undefined || stored === undefined) return []
  return [...copies.values()].filter(
    (each) =>
      each.message.plan?.group === message.plan?.group &&
      each.stored !== undefined &&
      each.stored.entry.queue === stored.entry.queue &&
      each.stored.index < stored.index &&
      (each.gone?.index ?? Infinity) > index
  )
}

/** Whether a process has requested the end of a copy by then, and nothing after it. */
export const isEnded = ({ deliveries }: CopyLife, { index, of: { process } }: Settling): boolean => {
  const asked = deliveries
    .flatMap((each) => (each.process === process ? each.settlings : []))
    .filter((each) => each.index < index)
    .toSorted((one, other) => one.index - other.index)
    .at(-1)?.asked.tag
  return asked !== undefined && asked !== "Retry" && asked !== "Release"
}
