/** Runs the scenario of each regression on its mutant, and prints a line of JSON for each: the law that it breaks. */
import { readFileSync } from "node:fs"
import type * as Checked from "../../src/Checked.ts"
import type { Regression } from "./Regression.ts"

// As it is, so that it is known what it imports.
await import("../../src/Checked.ts")
await import("../../src/rabbitmq/index.ts")
await import("../../src/sqs/index.ts")
await import("../../src/nsq/index.ts")

let crash: () => void = () => {}
process.on("uncaughtException", () => crash())

for (const [mutant, file] of process.argv.slice(2).entries()) {
  const { scenario }: Regression = JSON.parse(readFileSync(file, "utf8"))
  const { run }: typeof Checked = await import(`../../src/Checked.ts?mutant=${mutant}`)
  // A world in which something was thrown may never end.
  const crashed = new Promise<string>((resolve) => (crash = () => resolve("uncaught exception")))
  const broken = run(scenario).then(
    ({ law }) => law,
    () => "uncaught exception"
  )
  console.log(JSON.stringify((await Promise.race([broken, crashed])) ?? ""))
}
