/** Checks the form of a harness before its first case. Otherwise a misspelt ability would count as a missing one. */
import { OptionKind, OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { failures, operations, type Service } from "../Harness.ts"

/** The kind of a member, and how to write it. */
interface Kind extends OptionKind.OptionKind {
  readonly isOptional?: boolean | undefined
  readonly advice: string
}

const hook = (advice: string): Kind => ({ ...OptionKind.callback, advice })

const able = ({ advice, expected, holds }: Kind): Kind => ({
  expected: `${expected}, or undefined`,
  holds: (value) => value === undefined || holds(value),
  isOptional: true,
  advice
})

const effect = (advice: string): Kind => ({ expected: "an Effect", holds: Effect.isEffect, advice })

const millis: Kind = {
  expected: "a number >= 0",
  holds: (value) => typeof value === "number" && value >= 0 && Number.isFinite(value),
  advice: "Write milliseconds, for example 50"
}

const kinds: { readonly [K in keyof Service]: Kind } = {
  name: {
    expected: "text that is not empty",
    holds: (value) => typeof value === "string" && value !== "",
    advice: 'Write the broker and its version, for example "acme 4.2"'
  },
  uniqueQueue: hook("Write (base) => an Effect of the queue's name"),
  publishRaw: hook("Write (queue, body, headers) => an Effect"),
  deadLetters: hook("Write (queue) => an Effect of deliveries"),
  pending: hook("Write (queue) => an Effect of the counts"),
  cutConnections: able(effect("Write an Effect, not a function that returns one")),
  restart: able(effect("Write an Effect, not a function that returns one")),
  crash: able(effect("Write an Effect of a broker, not a function that returns one")),
  powerCut: able(effect("Write an Effect of a broker, not a function that returns one")),
  another: able(effect("Write an Effect of a broker, not a function that returns one")),
  failNext: able(hook("Write (operation, failure, queue) => an Effect, or undefined")),
  deleteQueue: able(hook("Write (queue) => an Effect")),
  foreignQueue: able(hook("Write (base) => an Effect of the queue's name")),
  transactions: able({ ...OptionKind.object("an object", "begin", "rows"), advice: "Write { begin, rows }" }),
  lateness: millis,
  settleTime: millis
}

const refused = (name: string, problem: string, remedy: string) =>
  OptionNames.error(`harness.${name}`, undefined, problem, remedy)

const problemOfMember = (harness: object, name: string, kind: Kind): RangeError | undefined => {
  if (!(name in harness)) {
    const others = Object.keys(harness).filter((other) => !(other in kinds))
    const meant = OptionNames.nearest(name, others)
    const spelt = meant === undefined ? kind.advice : `Write it in place of ${meant}`
    return refused(name, "missing", kind.isOptional ? `${spelt}; or write undefined, if it cannot be` : spelt)
  }
  const value: unknown = Reflect.get(harness, name)
  return kind.holds(value)
    ? undefined
    : refused(name, `must be ${kind.expected}, got ${OptionKind.show(value)}`, kind.advice)
}

const problemOfFailNext = ({ failNext }: Service): RangeError | undefined => {
  for (const operation of failNext === undefined ? [] : operations) {
    for (const failure of failures) {
      const value: unknown = failNext?.(operation, failure, "")
      if (value === undefined || Effect.isEffect(value)) continue
      const problem = `must return an Effect, or undefined, for ${operation} and ${failure}, got ${OptionKind.show(value)}`
      return refused("failNext", problem, kinds.failNext.advice)
    }
  }
  return undefined
}

/** Returns the first error of a harness; `undefined` if there is none. */
export const problemOf = (harness: Service): RangeError | undefined => {
  for (const [name, kind] of Object.entries(kinds)) {
    const problem = problemOfMember(harness, name, kind)
    if (problem !== undefined) return problem
  }
  return harness.foreignQueue === undefined || harness.foreignQueue !== harness.uniqueQueue
    ? problemOfFailNext(harness)
    : refused(
        "foreignQueue",
        "is uniqueQueue",
        "Make a queue of another kind; or write undefined, if there is one kind"
      )
}
