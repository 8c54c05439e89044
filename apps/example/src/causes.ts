/** The causes of dead letters, by the metadata that each carries. */
import type { DeadLetterQueue } from "@requeue/operations/promise"

type DeadLetters = Awaited<ReturnType<DeadLetterQueue["list"]>>

export interface Causes {
  readonly deadLettersByReason: Readonly<Record<string, number>>
  /** Most frequent first. */
  readonly causes: ReadonlyArray<{ readonly reason: string; readonly error: string; readonly count: number }>
}

/** Counts dead letters by reason and error. */
export const countCauses = (letters: DeadLetters): Causes => {
  const reasonOf = ({ origin }: DeadLetters[number]): string => origin?.reason ?? "unknown"
  const errorOf = ({ origin }: DeadLetters[number]): string => origin?.error.message ?? ""
  const byReason = Map.groupBy(letters, reasonOf)
  const byCause = Map.groupBy(letters, (letter) => JSON.stringify([reasonOf(letter), errorOf(letter)]))
  return {
    deadLettersByReason: Object.fromEntries([...byReason].map(([reason, members]) => [reason, members.length])),
    causes: [...byCause.values()]
      .map((members) => ({ reason: reasonOf(members[0]!), error: errorOf(members[0]!), count: members.length }))
      .toSorted((a, b) => b.count - a.count)
  }
}
