/** Runs the scenario of a regression, and prints the law that it breaks. */
import { readFileSync } from "node:fs"
import * as Checked from "../../src/Checked.ts"
import type { Regression } from "./Regression.ts"

const { scenario }: Regression = JSON.parse(readFileSync(process.argv[2]!, "utf8"))
process.stdout.write((await Checked.run(scenario)).law ?? "")
