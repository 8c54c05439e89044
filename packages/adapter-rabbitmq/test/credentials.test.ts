/** Credentials whose end is told wrongly, or has passed. */
import { BrokerError } from "@requeue/core"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import * as Address from "../src/internal/address.ts"
import * as Credentials from "../src/internal/connect/credentials.ts"

const address = Result.getOrThrow(Address.parse("amqp://localhost")).address

it.effect.each([1_800_000_000, 0, -1])("an expiresAt of %s is refused: it must be in milliseconds", (expiresAt) =>
  Effect.gen(function* () {
    const credentials = () => ({ password: "hunter2", expiresAt })
    const error = yield* Effect.flip(Credentials.ask({ connectTimeout: 1000, credentials }, address))
    assert.instanceOf(error, BrokerError.BrokerError)
    assert.match(error.message, new RegExp(`expiresAt is ${expiresAt}, .*milliseconds`))
    assert.notInclude(error.message, "hunter2")
  })
)

it.effect.each<[name: string, credentials: Credentials.Provider, isMisconfigured: boolean]>([
  ["answers nothing", () => undefined as never, true],
  ["answers no text", () => ({ password: 5 as never }), true],
  ["fails", () => Promise.reject(new Error("the vault is sealed")), false]
])("a function that %s tells a mistake of the configuration from a failure", ([, credentials, isMisconfigured]) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(Credentials.ask({ connectTimeout: 1000, credentials }, address))
    assert.strictEqual(error.isMisconfigured, isMisconfigured)
  })
)

it.effect("credentials that have ended are logged once, and are asked for after growing pauses", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(2e12)
    const lines: Array<string> = []
    const logger = Logger.make(({ fiber, message }) => {
      lines.push(`${String(message)}: ${String(fiber.getRef(References.CurrentLogAnnotations)["errorMessage"])}`)
    })
    const account = { username: "u", password: Redacted.make("p"), expiresAt: 2e12 - 5000 }
    let asked = 0
    const again = Effect.sync(() => (asked++, account))
    yield* Effect.forkScoped(
      Credentials.renew(account, again, () => Effect.void).pipe(Effect.provide(Logger.layer([logger])))
    )
    yield* TestClock.adjust("10 minutes")
    assert.strictEqual(lines.length, 1)
    assert.match(lines[0]!, /have expired: .*expiresAt is 2033-05-18T03:33:15.000Z, 5s ago/)
    assert.isBelow(asked, 20)
  })
)
