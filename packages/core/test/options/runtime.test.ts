import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Adapters } from "../../src/index.ts"
import { connect } from "../../src/promise.ts"

it.each<[string, () => Promise<unknown>]>([
  ["connect", () => connect("memory:")],
  ["Adapters.find", () => Effect.runPromise(Adapters.find("memory:"))]
])("%s says which Node.js is needed, where this one lacks what newer ones have", async (_, open) => {
  const { withResolvers } = Promise
  Reflect.deleteProperty(Promise, "withResolvers")
  const opened = open()
  // Node 20 has no such function; the rest of this process needs it.
  Promise.withResolvers = withResolvers
  const error = await opened.then(() => assert.fail("it was accepted"), String)
  const needs = `Requeue needs Node.js 22.19 or newer, and this program runs on ${process.version}`
  assert.strictEqual(error, `ConfigurationError: node: ${needs}. Run the program on a newer Node.js`)
})
