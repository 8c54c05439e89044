import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as ReadyQueue from "../src/internal/readyQueue.ts"

interface Member extends ReadyQueue.Member<Member> {
  readonly name: number
}

/** What is done: a new member comes, the head leaves, some of those that left come back, or all go. */
const steps = fc.array(fc.tuple(fc.constantFrom("append", "append", "take", "back", "clear"), fc.nat()), {
  size: "max",
  maxLength: 300
})

it("gives members in the order in which they first came, those too that come back", () =>
  fc.assert(
    fc.property(steps, (steps) => {
      const queue = ReadyQueue.make<Member>()
      const away: Array<Member> = []
      let expected: Array<Member> = []
      steps.forEach(([step, n], name) => {
        if (step === "append") {
          const member = { name, position: 0, next: undefined }
          queue.append(member)
          expected.push(member)
        } else if (step === "take") {
          const taken = queue.take()
          assert.strictEqual(taken, expected.shift())
          if (taken !== undefined) away.push(taken)
        } else if (step === "back" && away.length > 0) {
          const [member] = away.splice(n % away.length, 1)
          queue.putBack(member!)
          expected = [...expected, member!].toSorted((a, b) => a.name - b.name)
        } else if (step === "clear") {
          queue.clear()
          expected = []
        }
        assert.strictEqual(queue.size(), expected.length)
        assert.deepStrictEqual(
          Array.from(queue, ({ name }) => name),
          expected.map(({ name }) => name)
        )
      })
    })
  ))
