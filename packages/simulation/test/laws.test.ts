/** The laws hold in many worlds of every kind. `npm run simulate` goes on where this ends. */
import { assert, describe, it } from "@effect/vitest"
import * as Checked from "../src/Checked.ts"
import * as Generate from "../src/Generate.ts"
import { kinds } from "../src/Scenario.ts"

const seeds = 20

describe("the laws", () => {
  it.each(kinds)("hold in worlds with a broker of the kind %s", async (kind) => {
    const broken: Array<string> = []
    for (let seed = 1; seed <= seeds; seed++) {
      const { violations } = await Checked.run(Generate.scenario(seed, [kind]))
      broken.push(...violations.map(({ law, what }) => `seed ${seed}: ${law}: ${what}`))
    }
    assert.deepStrictEqual(broken, [])
  })

  it("let a consumer learn of another nsqd from nsqlookupd", async () => {
    // Sent to an nsqd that had no such topic when the consumer started.
    assert.deepStrictEqual((await Checked.run(Generate.scenario(3696, ["nsq"]))).violations, [])
  })
})
