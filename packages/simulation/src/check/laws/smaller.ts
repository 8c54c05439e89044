import { describe } from "../internal/Allowed.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { Lives, Settling } from "../internal/Lives.ts"

/** Milliseconds of the longest time for which an adapter tries nothing on a route that was refused. */
const longest = 2000

/** Whether the broker has stored a copy for a settlement, and its process knows that. */
const isStored = ({ answer, fate, index, of: { copy } }: Settling): boolean =>
  fate === "taken" &&
  copy.children.some(({ stored }) => stored !== undefined && stored.index > index && stored.index < answer)

/**
 * Whether a route of RabbitMQ was refused for another message shortly before, or at the same time, or before the last attempt for
 * another message: the adapter pauses the route, and tries no copy of this one meanwhile.
 */
const isPaused = (
  { history, scenario: { kind, refusals } }: Lives,
  { answer, asked, at, of: own }: Settling
): boolean => {
  if (kind !== "rabbitmq") return false
  const { copy, process } = own
  const keys = refusals.flatMap(({ key, reason, until }) => (until === 5 && reason !== "BodyTooLarge" ? key : []))
  const before = process.settlings.filter(
    (each) =>
      each.of.copy.message !== copy.message &&
      each.asked.queue === asked.queue &&
      each.asked.tag !== "Ack" &&
      each.index < answer
  )
  const refused = before.filter(
    (each) => each.fate === "rejected" && each.answer < answer && keys.includes(each.of.copy.message.key)
  )
  const isRecent = (time = 0): boolean => time >= at - longest
  const last = Math.max(...refused.map((each) => each.answer))
  const isOver = before.some((each) => each.index > last && each.answer < answer && isStored(each))
  return (
    refused.some((each) => isRecent(history[each.answer]?.at)) ||
    (refused.length > 0 && !isOver && before.some((each) => isRecent(each.at)))
  )
}

/** A broker that refuses copies of a message accepts one that leaves out enough: then the copy is smaller, and records that. */
export const smaller: Law = (lives) =>
  [...lives.deliveries.values()].flatMap((life) =>
    life.settlings.flatMap((settling) => {
      const { answer, asked, at, fate, index } = settling
      const refusal = lives.scenario.refusals.find(({ key }) => key === life.copy.message.key)
      if (fate !== "rejected" || asked.cut === 0 || refusal === undefined || asked.cut < refusal.until) return []
      // A busy RabbitMQ refuses any copy by a nack.
      const isBusy = lives.history.slice(index, answer).some((entry) => entry._tag === "Fault" && entry.kind === "busy")
      if (isBusy || isPaused(lives, settling)) return []
      const what = `${life.process.name} asked for ${describe(asked)}, to leave out ${asked.cut}, and its copy was refused; the broker takes one that leaves out ${refusal.until}.`
      return [violation("smaller", at, of(life), what, [index, answer])]
    })
  )
