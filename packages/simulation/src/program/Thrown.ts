/** Values that handlers throw: errors with a meaning for the core, and values that throw when they are used. */
import { Failure } from "@requeue/core"
import type { Thrown } from "../Scenario.ts"

/** An error whose text throws. */
const unprintable = (): unknown => ({
  toString: () => {
    throw new Error("it cannot be printed")
  },
  get message() {
    throw new Error("it has no message")
  }
})

/** A proxy that throws on every access. */
const trap = (): unknown =>
  new Proxy(
    {},
    {
      get: () => {
        throw new Error("it cannot be read")
      },
      has: () => {
        throw new Error("it cannot be asked")
      },
      getPrototypeOf: () => {
        throw new Error("it has no prototype")
      }
    }
  )

class HostileDate extends Date {
  override getTime(): never {
    throw new Error("it has no time")
  }
  override valueOf(): never {
    throw new Error("it has no value")
  }
}

/** Milliseconds of the `retryAfter` of an error. */
export const retryAfter = 7000

/** A new value of this kind. */
export const make = (kind: Thrown): unknown => {
  switch (kind) {
    case "error":
      return new Error("it failed")
    case "permanent":
      return new Failure.PermanentError("it can never succeed")
    case "drop":
      return new Failure.DropError("it is worthless")
    case "retryAfter":
      return new Failure.RetryLaterError({ message: "later", retryAfter: retryAfter / 1000 })
    case "string":
      return "it failed"
    case "undefined":
      return undefined
    case "unprintable":
      return unprintable()
    case "trap":
      return trap()
    case "hostileRetryAfter":
      return Object.assign(new Error("later"), { retryAfter: new HostileDate(0) })
  }
}
