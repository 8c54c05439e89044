/** The order of FIFO groups, and what is told of messages. */
import { byGroup, giveBack, outcome, type Case } from "./World.ts"

/** Two messages of a group of three are received, and this is done to them; answers what is received then. */
const afterTwo =
  (act: (index: 0 | 1) => "back" | "deleted" | "kept"): Case["ask"] =>
  async (world) => {
    const QueueUrl = await world.fifo("1a", "1b", "1c", "2a")
    const two = await world.receive(QueueUrl, { MaxNumberOfMessages: 2 })
    for (const [index, one] of two.entries()) {
      const done = act(index as 0 | 1) // Cast, because there are two.
      if (done === "back") await giveBack(world, QueueUrl, [one])
      if (done === "deleted") await world.sqs.deleteMessage({ QueueUrl, ReceiptHandle: one.ReceiptHandle })
    }
    return byGroup(await world.receive(QueueUrl))
  }

export const cases = {
  groupsInOneReceive: {
    aws: { 1: "1a 1b 1c", 2: "2a" },
    ask: async ({ fifo, receive }) => byGroup(await receive(await fifo("1a", "2a", "1b", "1c")))
  },
  groupsInFlight: {
    aws: [{ 1: "1a 1b" }, { 2: "2a" }, { 1: "1a 1b 1c 1d", 2: "2a", 3: "3a" }],
    ask: async (world) => {
      const queue = await world.fifo("1a", "1b", "1c", "1d", "2a", "3a")
      const two = await world.receive(queue, { MaxNumberOfMessages: 2 })
      const one = await world.receive(queue, { MaxNumberOfMessages: 1 })
      await giveBack(world, queue, [...two, ...one])
      return [byGroup(two), byGroup(one), byGroup(await world.receive(queue))]
    }
  },
  groupsInvisibleForNoTime: {
    aws: [
      { 1: "1a 1b", 2: "2a" },
      { 1: "1a 1b", 2: "2a 2b", 3: "3a" }
    ],
    ask: async ({ fifo, receive }) => {
      const queue = await fifo("1a", "2a", "2b", "3a", "1b")
      const some = await receive(queue, { MaxNumberOfMessages: 3, VisibilityTimeout: 0 })
      return [byGroup(some), byGroup(await receive(queue))]
    }
  },
  groupsReturned: {
    aws: { 1: "1a", 2: "2a" },
    ask: afterTwo((index) => (index === 0 ? "back" : "kept"))
  },
  groupsDeleted: {
    aws: [{ 2: "2a" }, { 1: "1c", 2: "2a" }],
    ask: async (world) => [
      await afterTwo((index) => (index === 0 ? "deleted" : "kept"))(world),
      await afterTwo(() => "deleted")(world)
    ]
  },
  groupsExtended: {
    aws: ["", "1a", "1a 1b"],
    ask: async (world) => {
      const seen: Array<string> = []
      for (const kept of [0, 1, 2]) {
        const queue = await world.fifo("1a", "1b", "1c")
        const all = await world.receive(queue)
        await giveBack(
          world,
          queue,
          all.filter((_, index) => index !== kept)
        )
        seen.push(byGroup(await world.receive(queue))["1"] ?? "")
      }
      return seen
    }
  },
  expiredVisibility: {
    aws: [1, "done"],
    ask: async ({ create, receive, sqs }) => {
      const QueueUrl = await create({ VisibilityTimeout: "1" })
      await sqs.sendMessage({ QueueUrl, MessageBody: "x" })
      const [{ ReceiptHandle } = {}] = await receive(QueueUrl)
      const again = await receive(QueueUrl, { WaitTimeSeconds: 5, VisibilityTimeout: 60 })
      const change = { QueueUrl, ReceiptHandle, VisibilityTimeout: 2 }
      return [again.length, await outcome(() => sqs.changeMessageVisibility(change))]
    }
  },
  fairGroup: {
    aws: "one",
    ask: async ({ create, receive, sqs }) => {
      const QueueUrl = await create()
      await sqs.sendMessage({ QueueUrl, MessageBody: "x", MessageGroupId: "one" })
      return (await receive(QueueUrl))[0]?.Attributes?.MessageGroupId
    }
  },
  deadLetterSources: {
    aws: [true, []],
    ask: async ({ given, sqs }) => {
      const [queue, deadLetters] = await given()
      const listed = async (QueueUrl: string) => (await sqs.listDeadLetterSourceQueues({ QueueUrl })).queueUrls
      return [(await listed(deadLetters))?.join() === queue, await listed(queue)]
    }
  },
  deadLetters: {
    aws: ["2", true],
    ask: async ({ arn, given, receive }) => {
      const [queue, deadLetters] = await given("x")
      const { ApproximateReceiveCount, DeadLetterQueueSourceArn } = (await receive(deadLetters))[0]?.Attributes ?? {}
      return [ApproximateReceiveCount, DeadLetterQueueSourceArn === arn(queue)]
    }
  }
} satisfies Readonly<Record<string, Case>>
