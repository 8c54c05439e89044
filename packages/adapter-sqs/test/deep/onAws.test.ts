/** The cases for AWS itself, on a server of this machine: only AWS is new to them there. */
import { describe, test } from "vitest"
import * as OnAws from "./onAws.ts"
import { strict } from "./strict.ts"

const { client: sqs, url } = await strict()

describe.concurrent("what only AWS can tell, behind the strict proxy", () => {
  test.each(OnAws.cases)("%s", (_, run) => run({ url, sqs }))
})
