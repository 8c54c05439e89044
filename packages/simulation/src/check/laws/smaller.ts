import { describe } from "../internal/Allowed.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { Lives, Settling } from "../internal/Lives.ts"

/** Milliseconds of the longest time for which an adapter tries nothing on a route that was refused. */
const longest = 2000

/**
 * Whether a route of RabbitMQ was refused for another message shortly before, or at the same time: the adapter pauses the route, and
 * tries no copy of this one meanwhile.
 */
const isPaused = (
  { history, scenario: { kind, refusals } }: Lives,
  { answer, asked, at, of: own }: Settling
): boolean => {
  const { copy, process } = own
  const others = refusals.filter(
    ({ key, reason, until }) => until === 5 && reason !== "BodyTooLarge" && key !== copy.message.key
  )
  const isOther = (each: Settling): boolean =>
    others.some(({ key }) => key === each.of.copy.message.key) && each.asked.queue === asked.queue
  return (
    kind === "rabbitmq" &&
    process.settlings.some(
      (each) =>
        isOther(each) &&
        each.fate === "rejected" &&
        each.index < answer &&
        (history[each.answer]?.at ?? 0) >= at - longest
    )
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
