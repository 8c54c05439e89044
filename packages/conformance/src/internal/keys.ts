/** Messages with keys, and the order in which they were handled. The first letter of an id is its key. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

/** Makes a case for brokers that keep the order of keys, and meet these requirements too. */
export const test = (name: string, body: Case.Body, ...needs: ReadonlyArray<Case.Requirement>): Case.Case =>
  Case.inGroup("keys")(name, body, Needs.all(Needs.has("keyedOrder"), ...needs))

export const keyOf = (id: string): string => id[0]!

/** Sends messages with their keys, in order. */
export const sendKeyed = (lab: Lab, ...ids: ReadonlyArray<string>) =>
  Effect.flatMap(lab.producer(), ({ sendBatch }) => sendBatch(ids.map((id) => ({ id, body: id, key: keyOf(id) }))))

/** Returns ids of these keys: `a0, b0, a1, b1, …` */
export const idsOf = (keys: ReadonlyArray<string>, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => keys.map((key) => `${key}${index}`)).flat()

/** The runs of a key: ids with attempts. */
export const runsOf = ({ runs }: Pick<Lab, "runs">, key: string): ReadonlyArray<string> =>
  runs.flatMap(({ attempts, id }) => (keyOf(id) === key ? [`${id}.${attempts}`] : []))

/** A record of which messages are in handlers, and of those that shared a key with another one. */
export const watch = () => {
  const inside = new Map<string, string>()
  const shared: Array<readonly [string, string]> = []
  const ended: Array<string> = []
  return {
    /** Two messages of a key that were in handlers at the same time. */
    shared,
    /** The messages whose handlers succeeded, in order. */
    ended,
    during: <E>({ id }: { readonly id: string }, work: Effect.Effect<unknown, E>): Effect.Effect<void, E> =>
      Effect.suspend(() => {
        const other = inside.get(keyOf(id))
        if (other !== undefined) shared.push([other, id])
        inside.set(keyOf(id), id)
        return Effect.ensuring(
          Effect.asVoid(Effect.tap(work, () => Effect.sync(() => ended.push(id)))),
          Effect.sync(() => inside.delete(keyOf(id)))
        )
      })
  }
}

/** Checks that the messages of each key succeeded in the order of these ids, and that none shared its key. */
export const checkOrder = ({ ended, shared }: ReturnType<typeof watch>, ids: ReadonlyArray<string>): void => {
  Check.equal("at the same time", shared, [])
  for (const key of new Set(ids.map(keyOf))) {
    const of = (some: ReadonlyArray<string>) => some.filter((id) => keyOf(id) === key)
    Check.equal(`order of ${key}`, of(ended), of(ids))
  }
}

/** The failure of a handler. */
export const no = Effect.fail(new Error("no"))

/** A policy without retries. */
export const once = RetryPolicy.make({ maxRetries: 0 })

/** Fails each message of this set, once for each attempt. */
export const failing =
  (...ids: ReadonlyArray<string>) =>
  ({ id }: { readonly id: string }): Effect.Effect<void, Error> =>
    ids.includes(id) ? no : Effect.void
