import { Backoff, ConfigurationError, RetryPolicy } from "@requeue/core"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import { isDeepStrictEqual } from "node:util"
import { describe, expect, test } from "vitest"
import * as SqsOptions from "../src/SqsOptions.ts"
import * as SqsPermissions from "../src/SqsPermissions.ts"
import * as SqsPlan from "../src/SqsPlan.ts"

const settingsOf = (options: Partial<SqsOptions.Options> = {}) =>
  Result.getOrThrow(SqsOptions.decode({ url: "sqs://eu-west-1", ...options }))

const planOf = (
  queue: string,
  retry: RetryPolicy.Options | undefined = {},
  options: Partial<SqsOptions.Options> = {}
): SqsPlan.Plan | ConfigurationError.ConfigurationError => {
  const policy = RetryPolicy.make(retry)
  const deadLetterQueues = RetryPolicy.deadLetterQueues(policy, queue)
  return SqsPlan.make({ queue, retry: policy, deadLetterQueues }, settingsOf(options))
}

const planned = (...args: Parameters<typeof planOf>): SqsPlan.Plan => {
  const plan = planOf(...args)
  if (plan instanceof ConfigurationError.ConfigurationError) throw plan
  return plan
}

const arnOf = ({ name }: { readonly name: string }) => `arn:aws:sqs:eu-west-1:123456789012:${name}`

/** What would be found if the plan had been carried out. */
const carriedOut = (plan: SqsPlan.Plan): Map<string, SqsPlan.Attributes> =>
  new Map(
    plan.queues.map((queue) => {
      const { attributes, name, redrive, redriveFrom } = queue
      return [
        name.name,
        {
          ...attributes,
          ...(redrive && { RedrivePolicy: SqsPlan.redrivePolicy(queue, arnOf(redrive.to)) }),
          ...(redriveFrom && { RedriveAllowPolicy: SqsPlan.redriveAllowPolicy([arnOf(redriveFrom)]) })
        }
      ]
    })
  )

const bad = (findings: ReadonlyArray<SqsPlan.Finding>) =>
  findings.filter(({ isGood }) => !isGood).map(({ attribute, queue }) => `${queue} ${attribute}`)

describe("what a queue becomes", () => {
  test("a standard queue, with slack behind the policy", () => {
    expect(SqsPlan.format(planned("orders", { maxRetries: 5 }))).toBe(
      [
        "queue orders, queues: create",
        "dead letters  orders-dlq",
        "              VisibilityTimeout              30",
        "              MessageRetentionPeriod         1209600",
        "              ReceiveMessageWaitTimeSeconds  20",
        "              SqsManagedSseEnabled           true",
        "              RedriveAllowPolicy             from orders",
        "work          orders",
        "              VisibilityTimeout              30",
        "              MessageRetentionPeriod         345600",
        "              ReceiveMessageWaitTimeSeconds  20",
        "              SqsManagedSseEnabled           true",
        "              RedrivePolicy                  to orders-dlq after 37"
      ].join("\n")
    )
  })

  test("a FIFO queue, whose groups do not slow each other down", () => {
    expect(SqsPlan.format(planned("orders.fifo", { maxRetries: 1 }, { encryption: "alias/mine" }))).toBe(
      [
        "queue orders.fifo, queues: create",
        "dead letters  orders-dlq.fifo",
        "              VisibilityTimeout              30",
        "              MessageRetentionPeriod         1209600",
        "              ReceiveMessageWaitTimeSeconds  20",
        "              KmsMasterKeyId                 alias/mine",
        "              FifoQueue                      true",
        "              ContentBasedDeduplication      false",
        "              DeduplicationScope             messageGroup",
        "              FifoThroughputLimit            perMessageGroupId",
        "              RedriveAllowPolicy             from orders.fifo",
        "work          orders.fifo",
        "              VisibilityTimeout              30",
        "              MessageRetentionPeriod         345600",
        "              ReceiveMessageWaitTimeSeconds  20",
        "              KmsMasterKeyId                 alias/mine",
        "              FifoQueue                      true",
        "              ContentBasedDeduplication      false",
        "              DeduplicationScope             messageGroup",
        "              FifoThroughputLimit            perMessageGroupId",
        "              RedrivePolicy                  to orders-dlq.fifo after 29",
        "note: a retried message holds up the others of its group"
      ].join("\n")
    )
  })

  test("a producer's queue has no redrive policy, and the same attributes", () => {
    const producing = SqsPlan.make({ queue: "orders" }, settingsOf()) as SqsPlan.Plan
    expect(producing.queues).toHaveLength(1)
    expect(producing.queues[0]).toEqual({ ...planned("orders").queues.at(-1), redrive: undefined })
    expect(producing.notes).toEqual([])
  })

  test.each([
    ["discarded", { deadLetter: "discard" }, {}, "no dead-letter queue: SQS has no backstop"],
    ["unlimited", { maxRetries: "unlimited" }, {}, "after 500 receives a retry is a new copy"],
    ["unlimited", { maxRetries: "unlimited" }, {}, "SQS deletes a message that is 4d old"],
    ["unlimited FIFO", { maxRetries: "unlimited" }, {}, "no backstop: SQS would give up after 1000 receives"],
    ["routed", { deadLetter: { queue: "a", routes: { permanent: "b" } } }, {}, "the backstop knows a only"],
    ["FIFO, resent", {}, { fifoRetry: "resend" }, "a retried message moves after the others of its group"]
  ] as ReadonlyArray<[string, RetryPolicy.Options, Partial<SqsOptions.Options>, string]>)(
    "%s: says so",
    (name, retry, options, text) => {
      const { notes } = planned(name.includes("FIFO") ? "orders.fifo" : "orders", retry, options)
      expect(notes.filter((note) => note.includes(text))).toHaveLength(1)
    }
  )

  test("of several dead-letter queues, SQS moves to the first", () => {
    const { queues } = planned("orders", { deadLetter: { queue: "a", routes: { permanent: "b" } } })
    expect(queues.map(({ name, redriveFrom }) => [name.name, redriveFrom?.name])).toEqual([
      ["a", "orders"],
      ["b", undefined],
      ["orders", undefined]
    ])
  })

  test("of any number of retries, SQS leaves room, or interferes never", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2000 }), fc.boolean(), (maxRetries, fifo) => {
        const { queues, receives } = planned(fifo ? "orders.fifo" : "orders", { maxRetries })
        const limit = queues.at(-1)!.redrive?.maxReceiveCount
        expect(limit === undefined ? fifo && maxRetries >= 989 : limit > receives && limit <= 1000).toBe(true)
      })
    )
  })
})

describe("what is refused", () => {
  test.each([
    ["orders", { deadLetter: "bad.fifo" }, {}, "retry.deadLetter", "bad.fifo is a FIFO queue, orders a standard one"],
    ["orders.fifo", { deadLetter: "letters" }, {}, "retry.deadLetter", "End the dead-letter queue's name in .fifo"],
    ["orders.dlq", { deadLetter: "orders-dlq" }, {}, "retry.deadLetter", "are both called orders-dlq on SQS"],
    ["or ders", {}, {}, "queue", "letters, digits, hyphens"],
    ["orders", { deadLetter: "or ders" }, {}, "retry.deadLetter", "letters, digits, hyphens"],
    ["orders", { maxRetries: 5 }, { maxReceiveCount: 16 }, "maxReceiveCount", "the policy needs more than 16"],
    ["orders.fifo", { maxRetries: "unlimited" }, { maxReceiveCount: 1000 }, "maxReceiveCount", "policy is unlimited"],
    [
      "orders",
      { maxRetries: 12, backoff: Backoff.constant("10 hours") },
      {},
      "retention",
      "a message is retried for 5d, SQS deletes it after 4d"
    ],
    [
      "orders.fifo",
      { maxRetries: 2, backoff: Backoff.sequence(["1 hour", "13 hours"]) },
      {},
      "retry.backoff",
      "a retry waits for 13h, a message can hold its place in a FIFO queue for 11h 59m"
    ],
    [
      "orders.fifo",
      { maxRetries: "unlimited", maxAge: "1 day", backoff: Backoff.constant("13 hours") },
      {},
      "retry.backoff",
      "a retry waits for 13h"
    ]
  ] as ReadonlyArray<[string, RetryPolicy.Options, Partial<SqsOptions.Options>, string, string]>)(
    "%s %o %o",
    (queue, retry, options, field, text) => {
      const error = planOf(queue, retry, options)
      expect(error).toBeInstanceOf(ConfigurationError.ConfigurationError)
      expect(error).toMatchObject({ field, broker: "sqs" })
      expect((error as ConfigurationError.ConfigurationError).message).toContain(text)
    }
  )

  test("not what just fits", () => {
    expect(planOf("orders", { maxRetries: 5 }, { maxReceiveCount: 17 })).not.toBeInstanceOf(
      ConfigurationError.ConfigurationError
    )
    const slow = { maxRetries: 12, backoff: Backoff.constant("10 hours") }
    expect(planOf("orders", slow, { retention: 6 * 86_400_000 })).not.toBeInstanceOf(
      ConfigurationError.ConfigurationError
    )
    expect(planOf("orders", { ...slow, maxAge: "3 days" })).not.toBeInstanceOf(ConfigurationError.ConfigurationError)
    // What waits longer than visibility lasts is copied, and a copy starts its age anew.
    const long = { maxRetries: 5, backoff: Backoff.constant("24 hours") }
    expect(planOf("orders", long)).not.toBeInstanceOf(ConfigurationError.ConfigurationError)
    const place = { maxRetries: 2, backoff: Backoff.constant("13 hours") }
    expect(planOf("orders.fifo", place, { fifoRetry: "resend" })).not.toBeInstanceOf(
      ConfigurationError.ConfigurationError
    )
  })
})

describe("what is found is compared", () => {
  test("a plan that was carried out is good", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 600 }), fc.boolean(), (maxRetries, fifo) => {
        const plan = planned(fifo ? "orders.fifo" : "orders", { maxRetries, backoff: Backoff.constant("1 second") })
        expect(bad(SqsPlan.verify(plan, carriedOut(plan), 30_000))).toEqual([])
      })
    )
  })

  test("a missing queue", () => {
    const plan = planned("orders")
    expect(bad(SqsPlan.verify(plan, new Map()))).toEqual(["orders.dlq QueueName", "orders QueueName"])
  })

  const redrivePolicy = (maxReceiveCount: number | string, to = "orders-dlq") => ({
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: arnOf({ name: to }), maxReceiveCount })
  })
  test.each([
    ["orders", redrivePolicy(14), ["orders RedrivePolicy"]],
    ["orders", redrivePolicy("14"), ["orders RedrivePolicy"]],
    ["orders", redrivePolicy(15), []],
    ["orders", redrivePolicy(15, "elsewhere"), []],
    ["orders", { RedrivePolicy: "" }, []],
    ["orders", { VisibilityTimeout: "29" }, ["orders VisibilityTimeout"]],
    ["orders", { MessageRetentionPeriod: "1209600" }, []],
    ["orders", { MessageRetentionPeriod: "60" }, ["orders MessageRetentionPeriod"]],
    ["orders", { DelaySeconds: "900" }, []],
    ["orders-dlq", { MessageRetentionPeriod: "345599" }, ["orders.dlq MessageRetentionPeriod"]],
    ["orders-dlq", { RedriveAllowPolicy: `{"redrivePermission":"denyAll"}` }, ["orders.dlq RedriveAllowPolicy"]],
    ["orders-dlq", { RedriveAllowPolicy: `{"redrivePermission":"allowAll"}` }, []],
    [
      "orders-dlq",
      { RedriveAllowPolicy: SqsPlan.redriveAllowPolicy([arnOf({ name: "other" })]) },
      ["orders.dlq RedriveAllowPolicy"]
    ],
    ["orders-dlq", { RedriveAllowPolicy: "no json" }, []]
  ] as ReadonlyArray<[string, SqsPlan.Attributes, ReadonlyArray<string>]>)("%s %o", (name, changed, expected) => {
    const plan = planned("orders", { maxRetries: 3, backoff: Backoff.sequence(["1 minute"]) })
    const found = carriedOut(plan)
    found.set(name, { ...found.get(name), ...changed })
    expect(bad(SqsPlan.verify(plan, found, 30_000))).toEqual(expected)
  })

  test.each([
    ["orders", { maxRetries: 3 }, 5],
    ["orders", { maxRetries: 3 }, 3],
    ["orders.fifo", { maxRetries: "unlimited" }, 1000],
    ["orders", { maxRetries: "unlimited" }, 500],
    ["orders.fifo", { deadLetter: "discard" }, 2]
  ] as ReadonlyArray<[string, RetryPolicy.Options, number]>)(
    "%s %o, which exists with a maxReceiveCount of %i: each remedy works",
    (queue, retry, count) => {
      const work = (policy: RetryPolicy.Options, maxReceiveCount: number | undefined) => {
        const plan = planned(queue, policy)
        const name = plan.queues.at(-1)!.name.name
        const found = carriedOut(plan)
        const { RedrivePolicy: _, ...others } = found.get(name)!
        found.set(name, maxReceiveCount === undefined ? others : { ...others, ...redrivePolicy(maxReceiveCount) })
        return SqsPlan.verify(plan, found).find(({ isGood }) => !isGood)
      }
      const remedy = work(retry, count)?.remedy ?? ""
      const [, attributes = "{}"] = /aws sqs set-queue-attributes .* --attributes '(.*?)'/.exec(remedy) ?? []
      const { RedrivePolicy: changed } = JSON.parse(attributes) as { readonly RedrivePolicy: string }
      const raised = /Set maxReceiveCount to (\d+) on the existing queue/.exec(remedy)?.[1]
      expect(raised).toBe(changed === "" ? undefined : String(JSON.parse(changed).maxReceiveCount))
      expect(work(retry, raised === undefined ? undefined : Number(raised))).toBeUndefined()
      expect(raised !== undefined || remedy.includes("Remove the RedrivePolicy of the existing queue")).toBe(true)
      const maxDeliveries = Number(/set retry\.maxDeliveries to (\d+), and fewer retries/.exec(remedy)?.[1])
      const fewer = { deadLetter: retry.deadLetter, maxRetries: Math.min(3, maxDeliveries - 1), maxDeliveries }
      // SQS moves what comes behind others of its group, however few deliveries the policy allows.
      const isFifo = queue.endsWith(".fifo")
      expect(Number.isNaN(maxDeliveries)).toBe(isFifo)
      expect(isFifo ? undefined : work(fewer, count)).toBeUndefined()
    }
  )

  const kms = "alias/mine"
  test.each<[string, SqsPlan.Attributes, Partial<SqsOptions.Options>, string, RegExp]>([
    [
      "orders",
      { MaximumMessageSize: "262144" },
      {},
      "MaximumMessageSize",
      /262144 bytes are refused, SQS takes 1048576/
    ],
    ["orders", { SqsManagedSseEnabled: "true" }, { encryption: "none" }, "SqsManagedSseEnabled", /is sqs, none was/],
    ["orders-dlq", redrivePolicy(5, "other"), {}, "RedrivePolicy", /on to .*:other when they were received 5 times/]
  ])(
    "%s %o: what is not as planned is noticed, and nothing is refused",
    (name, changed, options, attribute, detail) => {
      const plan = planned("orders", {}, options)
      const found = carriedOut(plan)
      for (const { name: each } of plan.queues) {
        found.set(each.name, { MaximumMessageSize: "1048576", ...found.get(each.name) })
      }
      const before = SqsPlan.verify(plan, found)
      found.set(name, { ...found.get(name), ...changed })
      const after = SqsPlan.verify(plan, found)
      expect(bad(after)).toEqual([])
      const [noticed, ...others] = after.filter((finding) => !before.some((one) => isDeepStrictEqual(one, finding)))
      expect(others).toEqual([])
      expect(noticed?.attribute).toBe(attribute)
      expect(`${noticed?.detail} ${noticed?.remedy}`).toMatch(detail)
    }
  )

  test.each<[string, SqsPlan.Attributes, Partial<SqsOptions.Options>, string, RegExp]>([
    ["orders-dlq", { MaximumMessageSize: "262144" }, {}, "orders.dlq MaximumMessageSize", /of more than 262144 bytes/],
    ["orders", { SqsManagedSseEnabled: "false" }, {}, "orders SqsManagedSseEnabled", /is none, sqs was planned/],
    ["orders", { KmsMasterKeyId: "alias/its" }, { encryption: kms }, "orders KmsMasterKeyId", /is alias\/its, alias/],
    [
      "orders",
      { SqsManagedSseEnabled: "true" },
      { encryption: kms },
      "orders KmsMasterKeyId",
      /is sqs, alias\/mine was/
    ],
    ["orders", {}, { encryption: kms }, "orders KmsMasterKeyId", /is none, alias\/mine was/]
  ])("%s %o: is bad, and consumers start all the same", (name, changed, options, about, detail) => {
    const plan = planned("orders", {}, options)
    const found = carriedOut(plan)
    for (const { name: each } of plan.queues) {
      found.set(each.name, { MaximumMessageSize: "1048576", ...found.get(each.name) })
    }
    const { KmsMasterKeyId: _, SqsManagedSseEnabled: __, ...others } = found.get(name)!
    found.set(name, { ...(about.includes("Size") ? found.get(name) : others), ...changed })
    const findings = SqsPlan.verify(plan, found)
    expect(bad(findings)).toEqual([about])
    const [finding] = findings.filter(({ isGood }) => !isGood)
    expect(finding?.mayStart).toBe(true)
    expect(finding?.detail).toMatch(detail)
  })

  test("a dead-letter queue from which SQS moves letters back to their queue is refused", () => {
    const plan = planned("orders")
    const found = carriedOut(plan)
    found.set("orders-dlq", { ...found.get("orders-dlq"), ...redrivePolicy(5, "orders") })
    expect(bad(SqsPlan.verify(plan, found))).toEqual(["orders.dlq RedrivePolicy"])
  })

  test("without encryption, SQS is told so: it encrypts new queues", () => {
    const { queues } = planned("orders", {}, { encryption: "none" })
    expect(queues.map(({ attributes }) => attributes["SqsManagedSseEnabled"])).toEqual(["false", "false"])
  })

  test("FIFO queues move a message with a new age", () => {
    const plan = planned("orders.fifo")
    const found = carriedOut(plan)
    found.set("orders-dlq.fifo", { ...found.get("orders-dlq.fifo"), MessageRetentionPeriod: "60" })
    expect(bad(SqsPlan.verify(plan, found))).toEqual([])
  })
})

describe("permissions", () => {
  const place = { region: "eu-west-1", account: "123456789012" }

  test("a consumer of queues that exist", () => {
    expect(SqsPermissions.make(planned("orders", {}, { queues: "verify" }), "consumer", place)).toEqual({
      Version: "2012-10-17",
      Statement: [
        {
          Sid: "Work",
          Effect: "Allow",
          Action: [
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:SendMessage",
            "sqs:GetQueueUrl",
            "sqs:GetQueueAttributes",
            "sqs:ListDeadLetterSourceQueues"
          ],
          Resource: ["arn:aws:sqs:eu-west-1:123456789012:orders"]
        },
        {
          Sid: "DeadLetters",
          Effect: "Allow",
          Action: ["sqs:SendMessage", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"],
          Resource: ["arn:aws:sqs:eu-west-1:123456789012:orders-dlq"]
        }
      ]
    })
  })

  const actions = (...args: Parameters<typeof SqsPermissions.make>) =>
    SqsPermissions.make(...args).Statement.flatMap(({ Action }) => Action)

  test("a producer can send, and nothing else", () => {
    expect(actions(planned("orders", {}, { queues: "use" }), "producer", place)).toEqual([
      "sqs:SendMessage",
      "sqs:GetQueueUrl",
      "sqs:GetQueueAttributes"
    ])
  })

  test("only who creates queues may", () => {
    const created = actions(planned("orders", {}, { tags: { team: "a" } }), "consumer", place)
    expect(created).toEqual(expect.arrayContaining(["sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:TagQueue"]))
    for (const queues of ["verify", "use"] as const) {
      const text = JSON.stringify(SqsPermissions.make(planned("orders", {}, { queues }), "operator", place))
      expect(text).not.toMatch(/CreateQueue|SetQueueAttributes|TagQueue/)
    }
  })

  test("a key of one's own", () => {
    const key = "arn:aws:kms:eu-west-1:123456789012:key/1234"
    const [statement] = SqsPermissions.make(planned("orders"), "producer", { ...place, key }).Statement.slice(-1)
    expect(statement).toEqual({
      Sid: "Key",
      Effect: "Allow",
      Action: ["kms:Decrypt", "kms:GenerateDataKey"],
      Resource: [key]
    })
  })

  test("never everything, on anything", () => {
    for (const role of ["consumer", "producer", "operator"] as const) {
      expect(JSON.stringify(SqsPermissions.make(planned("orders"), role, place))).not.toContain("*")
    }
  })

  test("a queue's own account, region and partition", () => {
    const plan = planned("arn:aws:sqs:eu-west-1:210987654321:orders", { deadLetter: "letters" })
    const [work, letters] = SqsPermissions.make(plan, "consumer", { ...place, partition: "aws-cn" }).Statement
    expect(work!.Resource).toEqual(["arn:aws-cn:sqs:eu-west-1:210987654321:orders"])
    expect(letters!.Resource).toEqual(["arn:aws-cn:sqs:eu-west-1:123456789012:letters"])
  })
})
