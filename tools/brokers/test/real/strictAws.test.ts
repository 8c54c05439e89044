/** Each rule of the table: what the server alone does, and that it is AWS's answer behind the proxy. */
import { readFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, test, vi } from "vitest"
import { start, strictSqs, Unavailable, type SqsBroker, type StrictSqs } from "../../src/index.ts"
import { notKept, rules } from "../../src/sqs/strict/table.ts"
import { cases as moves } from "./strictCases/moves.ts"
import { cases as queues } from "./strictCases/queues.ts"
import { cases as receiving } from "./strictCases/receiving.ts"
import { cases as sending } from "./strictCases/sending.ts"
import * as World from "./strictCases/World.ts"

vi.stubEnv("REQUEUE_SQS_URL", "")

type Name = keyof typeof rules
const cases: Readonly<Record<Name, World.Case>> = { ...receiving, ...sending, ...queues, ...moves }
const names = Object.keys(rules) as ReadonlyArray<Name> // Cast, because its keys are known.

/** A server, unless it cannot be had here. */
const startOf = (version: string): Promise<SqsBroker | undefined> =>
  start("sqs", { version }).catch((cause: unknown) => {
    if (cause instanceof Unavailable) return undefined
    throw cause
  })

describe.each(["fauxqs", "elasticmq"] as const)("%s", (version) => {
  let broker: SqsBroker | undefined
  let strict: StrictSqs | undefined
  let [alone, behind]: [World.World?, World.World?] = []
  beforeAll(async () => {
    broker = await startOf(version)
    if (broker === undefined) return
    strict = await strictSqs(broker)
    alone = World.make(broker.url, "alone")
    behind = World.make(strict.url, "strict")
  })
  afterAll(async () => {
    alone?.sqs.destroy()
    behind?.sqs.destroy()
    await strict?.close()
    await broker?.dispose()
  })

  test.for(names)("%s", async (name, { skip }) => {
    if (alone === undefined || behind === undefined) return skip(`${version} cannot be had here`)
    const { ask, aws } = cases[name]
    const { without }: { readonly without: ReadonlyArray<string> } = rules[name]
    assert.deepStrictEqual(await ask(behind), aws)
    const lax = await ask(alone).catch(String)
    if (without.includes(version)) assert.deepStrictEqual(lax, aws)
    else assert.notDeepEqual(lax, aws)
  })

  test.runIf(version === "fauxqs")("after 60 seconds, a deleted queue's name is free again", async () => {
    const { create, name, sqs } = behind ?? assert.fail()
    const queue = name()
    await sqs.deleteQueue({ QueueUrl: await create({}, queue) })
    await strict?.forward(59_000)
    assert.notStrictEqual(await World.outcome(() => create({}, queue)), "done")
    await strict?.forward(1000)
    assert.strictEqual(await World.outcome(() => create({}, queue)), "done")
  })

  test.runIf(version === "fauxqs")("a message whose visibility is over waits, though nobody receives", async () => {
    const { create, receive, sqs } = behind ?? assert.fail()
    const QueueUrl = await create()
    await sqs.sendMessage({ QueueUrl, MessageBody: "one" })
    const counts = async () => (await sqs.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })).Attributes
    await receive(QueueUrl, { VisibilityTimeout: 30 })
    assert.include(await counts(), { ApproximateNumberOfMessages: "0", ApproximateNumberOfMessagesNotVisible: "1" })
    await strict?.forward(30_001)
    assert.include(await counts(), { ApproximateNumberOfMessages: "1", ApproximateNumberOfMessagesNotVisible: "0" })
  })
})

test("the README has the table", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8")
  for (const { says, source, without } of Object.values(rules)) {
    assert.include(readme, `| ${says} | ${source} | ${without.join(", ") || "none"} |`)
  }
  for (const { says, source, why } of notKept) assert.include(readme, `| ${says} | ${source} | ${why} |`)
})
