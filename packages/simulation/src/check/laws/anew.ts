import { familyOf } from "../../Scenario.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife } from "../internal/Lives.ts"

/** The next delivery of the copy to its process, if it arrived legitimately and before the answer to a retry without a delay. */
const nextOf = (life: DeliveryLife): DeliveryLife | undefined => {
  const { back, copy, disconnected, process, settlings } = life
  const [retry] = settlings
  if (retry?.asked.tag !== "Retry" || retry.asked.delay > 0 || back?.entry.why !== "asked") return undefined
  return process.deliveries.slice(process.deliveries.indexOf(life) + 1).find(({ arrived, copy: other, handedOut }) => {
    const [came, went] = [arrived?.index ?? 0, handedOut?.index ?? 0]
    const isBefore = came > retry.index && (retry.answer < 0 || came < retry.answer)
    return other === copy && went > back.index && isBefore && (disconnected < 0 || disconnected > came)
  })
}

/**
 * A retry whose message was redelivered is over, whatever its answer: the message is run, and the retry is not requested again.
 */
export const anew: Law = ({ deliveries, scenario }) =>
  (["lease", "store"].includes(familyOf(scenario)) ? [...deliveries.values()] : []).flatMap((life) => {
    const { copy, process, settlings } = life
    const next = nextOf(life)
    const body = copy.message.plan?.body
    if (next === undefined || body === "neverDecoded" || body === "slowToDecode") return []
    const [first] = next.settlings
    const again = settlings[1]
    const shown = [settlings[0]?.index, next.arrived?.index]
    if (again !== undefined) {
      const what = `${process.name} asked for a retry again though its message had been redelivered; expected nothing more.`
      return [violation("anew", again.at, of(life), what, [...shown, again.index])]
    }
    if (first?.asked.tag !== "Retry" || next.runs.length > 0) return []
    const what = `${process.name} asked for a retry of a message that had been redelivered after one; expected a run.`
    return [violation("anew", first.at, of(next), what, [...shown, first.index])]
  })
