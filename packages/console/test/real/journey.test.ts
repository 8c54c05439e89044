/** One journey through the console in Chromium, on a real broker. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { browser } from "./browser.ts"
import { stage } from "./stage.ts"
import { visit } from "./visitors.ts"
import { causes, wholeWay } from "./wholeWay.ts"

it.live("on SQS, from the overview to all redriven", () =>
  Effect.gen(function* () {
    const { app, audit, dead, queue, url } = yield* stage("sqs")
    yield* app.giveUp(causes)
    app.mend()
    const visitor = yield* visit(yield* browser, url)
    yield* Effect.promise(() => wholeWay(visitor, { isStaged: false, isUntold: false }))
    yield* app.taken(15)
    assert.deepStrictEqual(visitor.strange, [])
    assert.deepStrictEqual([...new Set(app.handled)].toSorted(), [...app.dead].toSorted())
    assert.strictEqual((yield* app.counts(dead)).ready, 0)
    assert.strictEqual((yield* app.counts(queue)).ready, 0)
    const commands = audit.map((line) => (JSON.parse(line) as { readonly command: string }).command)
    assert.includeMembers(commands, ["console body", "console plan", "console redrive"])
  })
)
