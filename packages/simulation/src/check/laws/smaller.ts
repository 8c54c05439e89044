import { describe } from "../internal/Allowed.ts"
import type { Scenario } from "../../Scenario.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { KeyLife } from "../internal/Lives.ts"

/**
 * Whether a route is refused for the sake of another message: the adapter pauses the route, and no copy of this one is tried
 * meanwhile.
 */
const isPaused = ({ kind, refusals }: Scenario, { key: own }: KeyLife): boolean =>
  kind === "rabbitmq" &&
  refusals.some(({ key, reason, until }) => until === 5 && reason !== "BodyTooLarge" && key !== own)

/** A broker that refuses copies of a message accepts one that leaves out enough: then the copy is smaller, and records that. */
export const smaller: Law = ({ deliveries, history, scenario }) =>
  [...deliveries.values()].flatMap((life) =>
    (isPaused(scenario, life.copy.message) ? [] : life.settlings).flatMap((settling) => {
      const { answer, asked, at, fate, index } = settling
      const refusal = scenario.refusals.find(({ key }) => key === life.copy.message.key)
      if (fate !== "rejected" || asked.cut === 0 || refusal === undefined || asked.cut < refusal.until) return []
      // A busy RabbitMQ refuses any copy by a nack.
      const isBusy = history.slice(index, answer).some((entry) => entry._tag === "Fault" && entry.kind === "busy")
      if (isBusy) return []
      const what = `${life.process.name} asked for ${describe(asked)}, to leave out ${asked.cut}, and its copy was refused; the broker takes one that leaves out ${refusal.until}.`
      return [violation("smaller", at, of(life), what, [index, answer])]
    })
  )
