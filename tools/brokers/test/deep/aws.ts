/**
 * The strict proxy's claims about AWS, asked of AWS itself: a part of `npm run test:aws`, never of `npm test`. A test that
 * fails here means that AWS has changed, or that the proxy is wrong.
 */
import { afterAll, assert, describe, test } from "vitest"
import { rules } from "../../src/sqs/strict/table.ts"
import { cases as moves } from "../real/strictCases/moves.ts"
import { cases as queues } from "../real/strictCases/queues.ts"
import { cases as receiving } from "../real/strictCases/receiving.ts"
import { cases as sending } from "../real/strictCases/sending.ts"
import * as World from "../real/strictCases/World.ts"

const cases: Readonly<Record<keyof typeof rules, World.Case>> = { ...receiving, ...sending, ...queues, ...moves }

const url = process.env["REQUEUE_AWS_URL"]
if (url === undefined || url === "") throw new Error("test:aws needs REQUEUE_AWS_URL, for example sqs://eu-west-1")

console.log(`The rules of the strict proxy make about ${3 * Object.keys(cases).length} queues of a name that starts with
requeue-rules-, and at most 2,000 API calls; the queues are removed at the end. The identity needs every action of SQS on
queues of that name, sqs:ListQueues and sqs:CreateQueue among them.`)

const prefix = `requeue-rules-${Date.now().toString(36)}-`
const first = World.make(url, prefix)
const account = (await first.create()).split("/").at(-2)

afterAll(async () => {
  const { QueueUrls = [] } = await first.sqs.listQueues({ QueueNamePrefix: prefix, MaxResults: 1000 })
  for (const QueueUrl of QueueUrls) await first.sqs.deleteQueue({ QueueUrl })
  first.sqs.destroy()
})

describe("what AWS does", () => {
  test.each(Object.entries(cases))("%s", { timeout: 180_000 }, async (name, { ask, aws }) => {
    const world = World.make(url, `${prefix}${name}-`, { account: account!, wait: 5 })
    try {
      assert.deepStrictEqual(await ask(world), aws)
    } finally {
      world.sqs.destroy()
    }
  })
})
