/**
 * The checker: reads a whole history and names what breaks the design. It was written from the design and shares no code with the
 * core: a defect stays hidden only if both are wrong in the same way.
 */
import type { History } from "../History.ts"
import type { Scenario } from "../Scenario.ts"
import { doubled } from "./internal/doubled.ts"
import type { Law } from "./internal/law.ts"
import { readLives } from "./internal/readLives.ts"
import { afterDeath } from "./laws/afterDeath.ts"
import { redelivered } from "./laws/redelivered.ts"
import { anew } from "./laws/anew.ts"
import { attempts } from "./laws/attempts.ts"
import { books } from "./laws/books.ts"
import { budget } from "./laws/budget.ts"
import { concurrency } from "./laws/concurrency.ts"
import { copies } from "./laws/copies.ts"
import { credit } from "./laws/credit.ts"
import { defects } from "./laws/defects.ts"
import { doubleRun } from "./laws/doubleRun.ts"
import { durability } from "./laws/durability.ts"
import { drain } from "./laws/drain.ts"
import { early, earlyAgain } from "./laws/early.ts"
import { events } from "./laws/events.ts"
import { health } from "./laws/health.ts"
import { late } from "./laws/late.ts"
import { leases } from "./laws/leases.ts"
import { liveness } from "./laws/liveness.ts"
import { lost } from "./laws/lost.ts"
import { pauses } from "./laws/pauses.ts"
import { pausing } from "./laws/pausing.ts"
import { operators } from "./laws/operators.ts"
import { lanes } from "./laws/lanes.ts"
import { order } from "./laws/order.ts"
import { precedence } from "./laws/precedence.ts"
import { probing } from "./laws/probing.ts"
import { pulls } from "./laws/pulls.ts"
import { rate } from "./laws/rate.ts"
import { refused } from "./laws/refused.ts"
import { repeated } from "./laws/repeated.ts"
import { room } from "./laws/room.ts"
import { settleOnce } from "./laws/settleOnce.ts"
import { shares } from "./laws/shares.ts"
import { smaller } from "./laws/smaller.ts"
import { transactions } from "./laws/transactions.ts"
import { unseen } from "./laws/unseen.ts"
import { waiting } from "./laws/waiting.ts"
import type { Violation } from "./Violation.ts"

export type { Violation } from "./Violation.ts"

/** Those that explain most come first. */
const laws: ReadonlyArray<Law> = [
  defects,
  books,
  durability,
  transactions,
  leases,
  copies,
  precedence,
  repeated,
  redelivered,
  anew,
  doubleRun,
  lost,
  early,
  earlyAgain,
  late,
  attempts,
  unseen,
  order,
  lanes,
  shares,
  concurrency,
  rate,
  budget,
  pulls,
  probing,
  pausing,
  credit,
  room,
  settleOnce,
  refused,
  pauses,
  smaller,
  afterDeath,
  events,
  health,
  drain,
  operators,
  waiting,
  liveness
]

/** The laws of what a process recognises when it is redelivered. */
const ofNames: ReadonlySet<Law> = new Set([
  books,
  precedence,
  repeated,
  redelivered,
  doubleRun,
  earlyAgain,
  attempts,
  unseen
])

/** Returns all violations of a history, in order of time. Empty: it conforms to the design. */
export const check = (scenario: Scenario, history: History): ReadonlyArray<Violation> => {
  const lives = readLives(scenario, history)
  const unnamed = doubled(lives)
  const isMeant = (law: Law, { at, delivery = -1 }: Violation): boolean => {
    const copy = ofNames.has(law) ? lives.deliveries.get(delivery)?.copy : undefined
    return copy === undefined || at < (unnamed.get(copy) ?? Infinity)
  }
  return laws.flatMap((law) => law(lives).filter((found) => isMeant(law, found))).toSorted((a, b) => a.at - b.at)
}
