/** Messages with `fairBy`. The first letter of an id is its share. */
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const caseOf =
  (group: string) =>
  (name: string, body: Case.Body, ...needs: ReadonlyArray<Case.Requirement>): Case.Case =>
    Case.inGroup(group)(name, body, Needs.all(Needs.has("fairShares"), ...needs))

/** Makes a case for brokers with fair shares that meet these requirements too. */
export const test = caseOf("fair shares")

/** Does the same for the limits of shares. */
export const limitTest = caseOf("share limits")

export const shareOf = (id: string): string => id[0]!

/** Returns ids of one share: `a0, a1, …` */
export const manyOf = (share: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${share}${index}`)

/** Sends messages with their `fairBy`, in order. */
export const sendShared = (lab: Lab, ...ids: ReadonlyArray<string>) =>
  Effect.flatMap(lab.producer(), ({ sendBatch }) => sendBatch(ids.map((id) => ({ id, body: id, fairBy: shareOf(id) }))))

/** A record of how many messages of each share are in handlers. */
export const watch = () => {
  const inside = new Map<string, number>()
  const most = new Map<string, number>()
  return {
    /** The most messages of each share that were in handlers at the same time. */
    most,
    during: <A, E>({ id }: { readonly id: string }, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        const share = shareOf(id)
        const count = (inside.get(share) ?? 0) + 1
        inside.set(share, count)
        most.set(share, Math.max(most.get(share) ?? 0, count))
        return Effect.ensuring(
          work,
          Effect.sync(() => inside.set(share, inside.get(share)! - 1))
        )
      })
  }
}
