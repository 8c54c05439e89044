import { describe } from "../internal/Allowed.ts"
import { type Law, of, violation } from "../internal/law.ts"

/** A broker that refuses copies of a message accepts one that leaves out enough: then the copy is smaller, and records that. */
export const smaller: Law = ({ deliveries, history, scenario: { refusals } }) =>
  [...deliveries.values()].flatMap((life) =>
    life.settlings.flatMap((settling) => {
      const { answer, asked, at, fate, index } = settling
      const refusal = refusals.find(({ key }) => key === life.copy.message.key)
      if (fate !== "rejected" || asked.cut === 0 || refusal === undefined || asked.cut < refusal.until) return []
      // A busy RabbitMQ refuses any copy by a nack.
      const isBusy = history.slice(index, answer).some((entry) => entry._tag === "Fault" && entry.kind === "busy")
      if (isBusy) return []
      const what = `${life.process.name} asked for ${describe(asked)}, to leave out ${asked.cut}, and its copy was refused; the broker takes one that leaves out ${refusal.until}.`
      return [violation("smaller", at, of(life), what, [index, answer])]
    })
  )
