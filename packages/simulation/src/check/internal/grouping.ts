/** Groups of messages, whose order a FIFO queue keeps. */
import type { CopyLife, Lives, ProcessLife, Settling, Turn } from "./Lives.ts"

/**
 * Whether a process returns a copy at a moment that was redelivered to it before: the core then does not know that later messages of
 * the group, which came with the redelivery, must be returned too.
 */
const isReturning = ({ deliveries }: CopyLife, process: ProcessLife, index: number): boolean => {
  const ours = deliveries.filter((each) => each.process === process && (each.arrived?.index ?? Infinity) < index)
  const last = ours.at(-1)
  const isUnbegun = last !== undefined && last.runs.every(({ began }) => began.index > index)
  return (
    ours.length > 1 && isUnbegun && ours.some(({ settlings }) => settlings.some(({ asked }) => asked.tag === "Release"))
  )
}

/**
 * The copies of a message's group that were stored before its copy, and that are still in the queue at a moment; with a process,
 * those that it knows to be before.
 */
export const earlierIn = (
  { copies, scenario }: Lives,
  copy: CopyLife,
  index: number,
  process?: ProcessLife
): ReadonlyArray<CopyLife> => {
  const { message, stored } = copy
  if (scenario.fifo === undefined || stored === undefined) return []
  return [...copies.values()].filter(
    (each) =>
      each.message.plan?.group === message.plan?.group &&
      each.stored !== undefined &&
      each.stored.entry.queue === stored.entry.queue &&
      each.stored.index < stored.index &&
      (each.gone?.index ?? Infinity) > index &&
      !(process !== undefined && isReturning(each, process, index))
  )
}

/**
 * Whether a process has requested the end of a copy by then, and nothing after it. If retries go to the end of their group, they end
 * the copy as well.
 */
export const isEnded = (
  { scenario: { fifo } }: Lives,
  { deliveries }: CopyLife,
  { index, of: { process } }: Settling
): boolean => {
  const asked = deliveries
    .flatMap((each) => (each.process === process ? each.settlings : []))
    .filter((each) => each.index < index)
    .toSorted((one, other) => one.index - other.index)
    .at(-1)?.asked.tag
  return asked !== undefined && asked !== "Release" && (asked !== "Retry" || fifo === "resend")
}

/** The copies of its group that a run had before a message. */
const before = ({ deliveries, scenario }: Lives, { given, of: { copy }, run }: Turn): ReadonlyArray<CopyLife> => {
  if (scenario.fifo === undefined) return []
  const all = run.began.entry.given
  return all
    .slice(0, all.indexOf(given))
    .flatMap(({ delivery }) => deliveries.get(delivery)?.copy ?? [])
    .filter(({ message }) => message.plan?.group === copy.message.plan?.group)
}

/** Whether a run had an earlier message of its group: then it may have to run again with that. */
export const isBehind = (lives: Lives, turn: Turn): boolean => before(lives, turn).length > 0

/** Whether a process may return a message because it has not requested the end of an earlier one that the same run had. */
export const mayFollow = (lives: Lives, turn: Turn, settling: Settling): boolean =>
  before(lives, turn).some((each) => !isEnded(lives, each, settling))
