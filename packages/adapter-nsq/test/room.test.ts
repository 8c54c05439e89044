/** The laws of room: never more inside than there is room, in order, and all of it back at the end. */
import { describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fc from "fast-check"
import { assert } from "vitest"
import * as Room from "../src/internal/publish/room.ts"

const limit = 5

/** Somebody comes who wants room, or one of those who have come ends, or is interrupted. */
const step = fc.record({
  what: fc.constantFrom("come", "come", "end", "interrupt"),
  which: fc.nat(20),
  size: fc.integer({ min: 1, max: limit })
})

describe("room", () => {
  it("holds no more than there is, lets in who waits in order, and is all there at the end", () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), (steps) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const room = Room.make(limit)
            const entered: Array<number> = []
            const guests: Array<{ readonly gate: Deferred.Deferred<void>; readonly fiber: Fiber.Fiber<void> }> = []
            let inside = 0
            for (const { size, what, which } of steps) {
              const guest = guests[which % Math.max(1, guests.length)]
              if (what === "come") {
                const index = guests.length
                const gate = Deferred.makeUnsafe<void>()
                const stay = Effect.suspend(() => {
                  inside += size
                  entered.push(index)
                  assert.isAtMost(inside, limit)
                  return Effect.ensuring(
                    Deferred.await(gate),
                    Effect.sync(() => (inside -= size))
                  )
                })
                const fiber = yield* Effect.forkChild(room.within(size, stay, (late) => late))
                guests.push({ gate, fiber })
              } else if (guest !== undefined && what === "end") yield* Deferred.succeed(guest.gate, undefined)
              else if (guest !== undefined) yield* Fiber.interrupt(guest.fiber)
              yield* Effect.sleep(0)
              // Somebody who waits does so for want of room.
              assert.isTrue(inside > 0 || entered.length === 0 || room.has(limit))
            }
            assert.deepStrictEqual(
              entered,
              entered.toSorted((a, b) => a - b)
            )
            for (const { gate } of guests) yield* Deferred.succeed(gate, undefined)
            yield* Effect.forEach(guests, ({ fiber }) => Fiber.await(fiber), { discard: true })
            assert.isTrue(room.has(limit))
            assert.strictEqual(inside, 0)
          })
        )
      ),
      { numRuns: 200 }
    ))
})
