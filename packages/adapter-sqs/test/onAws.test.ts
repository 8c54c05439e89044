/** The cases for AWS itself, on a server of this machine: only AWS is new to them there. */
import { describe, test } from "vitest"
import * as OnAws from "./onAws.ts"
import { strict } from "./strict.ts"

const { client: sqs, url } = await strict()

/** No server of this machine remembers the attempts of receives. */
const known = OnAws.cases.filter(([name]) => !name.includes("attempt id"))

describe.concurrent("what only AWS can tell, behind the strict proxy", () => {
  test.each(known)("%s", (_, run) => run({ url, sqs }))
})
