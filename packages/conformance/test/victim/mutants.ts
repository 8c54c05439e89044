/** Ways to write the file broker wrongly: one text of one of its files, its replacement, and the case that finds it. */

import type { Patch } from "../../src/Mutant.ts"
import * as VirtualTime from "../../src/VirtualTime.ts"

/** The same mistake for several cases, which differ in how a call fails. */
const failing = (
  failures: ReadonlyArray<string>,
  kills: (failure: string) => string,
  patch: Omit<Patch, "kills">
): ReadonlyArray<Patch> => failures.map((failure) => ({ ...patch, kills: kills(failure) }))

const refused = "that the broker refuses"
const lostRequest = "that never reaches the broker"
const lostAnswer = "that the broker never answers"

const single = (failure: string) => `a publish ${failure} ends, and is reported as failed unless the message is stored`
const many = (failure: string) => `a batch with a publish ${failure} reports for each entry whether it is stored`
const endsAlways = (failure: string) =>
  `the settlement of a dead letter's copy ${failure} ends, although its subscription has ended`

export const patches: ReadonlyArray<Patch> = [
  ...[
    "a lease that is not extended ends: the message comes to another process, and the attempt counts",
    "a message whose leases end in one process after the other is a dead letter, and the next handler does not see it"
  ].map((kills) => ({
    name: "does not count leases that end",
    kills,
    file: "victim/file.ts",
    text: "SET deliveries = deliveries + 1, receipt",
    replacement: "SET deliveries = deliveries + (receipt IS NULL), receipt"
  })),
  {
    name: "knows the leases of its own process only",
    kills: "each message goes to one process; when that ends, what it held goes to the other",
    file: "victim/file.ts",
    text: "WHERE seq IN (SELECT seq FROM messages WHERE ${isReady} ORDER",
    replacement: `WHERE seq IN (SELECT seq FROM messages WHERE queue = :queue AND due <= :now
       AND (leased_until <= :now OR substr(receipt, 1, 36) <> substr(:receipt, 1, 36)) ORDER`
  },
  {
    name: "counts what is given back",
    kills: "what is given back has used up no attempt",
    file: "victim/file.ts",
    text: "SET due = :due, deliveries = deliveries - 1,",
    replacement: "SET due = :due,"
  },
  {
    name: "gives nothing back when a subscription closes",
    kills: "each message goes to one process; when that ends, what it held goes to the other",
    file: "victim/subscription.ts",
    text: "held.forEach(file.giveBack)",
    replacement: "undefined"
  },
  {
    name: "never tells of a lost lease",
    kills: "extending reports a lease that has ended, and leaves the other process its delivery",
    file: "victim/subscription.ts",
    text: `return isHeld ? [] : [{ delivery, error: gone("extend", queue), fate: "lost" }]`,
    replacement: "return []"
  },
  {
    name: "extends by an outdated receipt, and takes the lease away",
    kills: "extending reports a lease that has ended, and leaves the other process its delivery",
    file: "victim/file.ts",
    text: `"UPDATE messages SET leased_until = :until WHERE seq = :seq AND receipt = :receipt AND leased_until > :now"`,
    replacement: `"UPDATE messages SET leased_until = :until, receipt = :receipt WHERE seq = :seq AND :now > 0"`
  },
  {
    name: "does not extend",
    kills: "a message whose lease is extended comes to no other process, and stays with its own",
    file: "victim/file.ts",
    text: "SET leased_until = :until WHERE",
    replacement: "SET leased_until = leased_until + 0 * :until WHERE"
  },
  {
    name: "extends the first lease of a list",
    kills: "messages whose leases are extended in one call come to no other process, and stay with their own",
    file: "victim/subscription.ts",
    text: "Effect.forEach(deliveries, extend)",
    replacement: "Effect.forEach(deliveries.slice(0, 1), extend)"
  },
  {
    name: "settles the newer delivery by an outdated receipt",
    kills:
      "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process",
    file: "victim/file.ts",
    text: `"DELETE FROM messages WHERE seq = :seq AND receipt = :receipt"`,
    replacement: `"DELETE FROM messages WHERE seq = :seq AND :receipt <> ''"`
  },
  {
    name: "makes a dead letter of a delivery whose lease has ended",
    kills:
      "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process",
    file: "victim/subscription.ts",
    text: "receipt.until <= now()\n",
    replacement: "receipt.until <= 0\n"
  },
  {
    name: "measures time from the start of its process",
    kills: "a message that one process delays comes to another at its time, and not before",
    file: "victim/FileBroker.ts",
    text: "const now = () => clock.currentTimeMillisUnsafe()",
    // The first process starts with the clock.
    replacement: `const ahead = clock.currentTimeMillisUnsafe() - ${VirtualTime.epoch}
      const now = () => clock.currentTimeMillisUnsafe() - ahead`
  },
  {
    name: "keeps the attempts of a retry to itself",
    kills: "a retry that one process delays comes to another at its time, with its attempts and its history",
    file: "victim/subscription.ts",
    text: "const copy = Outgoing.retry(delivery, settlement, queue, now())",
    replacement: "const copy = { ...Outgoing.retry(delivery, settlement, queue, now()), metadata: delivery.metadata }"
  },
  {
    name: "keeps dead letters to its process",
    kills: "dead letters of one process are seen, and redriven, by another",
    file: "victim/FileBroker.ts",
    text: "subscribe: (own) => subscribe(own, process)",
    replacement: "subscribe: (own) => subscribe({ ...own, queue: own.queue + process.name }, process)"
  },
  ...[
    (failure: string) => `a dead letter's copy ${failure} is stored in the end, and until then its original stays`,
    (failure: string) => `a dead letter's copy ${failure} before its subscription ends leaves its original there`
  ].flatMap((kills) =>
    failing([refused, lostRequest], kills, {
      name: "removes an original before its dead letter is stored",
      file: "victim/subscription.ts",
      text: "Effect.andThen(stored(copy), Effect.ignore(remove))",
      replacement: "Effect.andThen(remove, stored(copy))"
    })
  ),
  {
    name: "keeps an original whose dead letter is stored",
    kills: "what was settled comes to no other process when its subscription ends, nor when its lease would",
    file: "victim/subscription.ts",
    text: "Effect.andThen(stored(copy), Effect.ignore(remove))",
    replacement: "stored(copy)"
  },
  ...failing(
    [refused, lostRequest, lostAnswer],
    (failure) => `a delayed retry with a removal ${failure} has its second run, and no third`,
    {
      name: "takes the copy of a retry for its original, by the id that both have",
      file: "victim/subscription.ts",
      text: "String(receiptOf(delivery).seq)",
      replacement: "delivery.metadata.id"
    }
  ),
  ...failing(
    [refused, lostRequest, lostAnswer],
    (failure) => `a dead letter with a removal ${failure} is stored once, after one run`,
    {
      name: "copies again what it could not remove",
      file: "victim/subscription.ts",
      text: "Effect.andThen(stored(copy), Effect.ignore(remove))",
      replacement: "Effect.andThen(stored(copy), remove)"
    }
  ),
  ...failing(
    [refused, lostRequest],
    (failure) => `a dead letter with a removal ${failure} is stored once, after one run`,
    {
      name: "forgets whose copies are stored",
      file: "victim/subscription.ts",
      text: "() => void copied.add(nameOf(delivery))",
      replacement: "() => {}"
    }
  ),
  ...[
    (failure: string) => `the fate of an ack ${failure} is true, and it can be asked again`,
    (failure: string) => `the fate of a dead letter with a copy ${failure} is true, and it can be asked again`
  ].flatMap((kills) => [
    ...failing([refused, lostRequest, lostAnswer], kills, {
      name: "tells of every settlement that fails as of a lost lease",
      file: "victim/subscription.ts",
      text: "const fate = Broker.fateOf(error)",
      replacement: `const fate = "lost"`
    }),
    ...failing([refused], kills, {
      name: "takes a file that is locked for a refusal",
      file: "victim/subscription.ts",
      text: "const fate = Broker.fateOf(error)",
      replacement: `const fate = error.reason === "Throttled" ? "rejected" : Broker.fateOf(error)`
    })
  ]),
  // After an ack that was done without an answer, the message is gone.
  ...[
    ...[refused, lostRequest].map((failure) => `the fate of an ack ${failure} is true, and it can be asked again`),
    ...[refused, lostRequest, lostAnswer].map(
      (failure) => `the fate of a dead letter with a copy ${failure} is true, and it can be asked again`
    )
  ].map((kills) => ({
    name: "holds what it could not settle as settled",
    kills,
    file: "victim/subscription.ts",
    text: "          receipt.isTaken = false\n",
    replacement: ""
  })),
  ...[
    ...[refused, lostRequest, lostAnswer].map(single),
    // What is told as failed is there.
    many(lostAnswer)
  ].map((kills) => ({
    name: "gives a wrong reason",
    kills,
    file: "victim/driver.ts",
    text: `new BrokerError.BrokerError({ broker: "file", operation, reason, detail })`,
    replacement: `new BrokerError.BrokerError({ broker: "file", operation, reason: "Unsupported", detail })`
  })),
  ...failing(
    [refused, lostRequest],
    (failure) => `a purge with a receive ${failure} fails, or has removed the backlog`,
    {
      name: "hides that a purge has failed",
      file: "victim/FileBroker.ts",
      text: `driver.call("receive", (file) => file.purge(queue, now()))`,
      replacement: `Effect.orElseSucceed(driver.call("receive", (file) => file.purge(queue, now())), () => 0)`
    }
  ),
  ...[
    ["gives a foreign message another id each time", "`file-${seq}`", "`file-${seq}-${Math.random()}`"],
    [
      "takes the time of delivery for that of a foreign publish",
      "`, published)",
      "`, published + Math.floor(Math.random() * 1e9))"
    ]
  ].map(([name = "", text = "", replacement = ""]) => ({
    name,
    kills: "a foreign message has the same id and time of first publish at each delivery",
    file: "victim/toDelivery.ts",
    text,
    replacement
  })),
  ...[refused, lostRequest]
    .flatMap((failure) => [single(failure), many(failure)])
    .map((kills) => ({
      name: "says that it has stored what it has not",
      kills,
      file: "victim/FileBroker.ts",
      text: "      publish,\n      subscribe:",
      replacement: "      publish: (messages) => Effect.ignore(publish(messages)),\n      subscribe:"
    })),
  ...[
    `an ack ${refused} is settled in the end, without a second run`,
    ...[refused, lostRequest, lostAnswer].map(endsAlways)
  ].map((kills) => ({
    name: "never ends a settlement that fails",
    kills,
    file: "victim/subscription.ts",
    text: "Effect.match(carryOut(request, queue, process), {",
    replacement: "Effect.match(Effect.catch(carryOut(request, queue, process), () => Effect.never), {"
  })),
  ...failing(
    [refused, lostRequest, lostAnswer],
    (failure) => `a receive ${failure} is followed by others, and loses nothing`,
    {
      name: "looks for no more messages when a look has failed",
      file: "victim/subscription.ts",
      text: "onFailure: () => process.browsed(false)",
      replacement: "onFailure: () => { throw new Error() }"
    }
  ),
  ...failing(
    [refused, lostRequest, lostAnswer],
    (failure) => `an extension ${failure} ends, and costs nothing while the lease lasts`,
    {
      name: "tells of every extension that fails as of a lost lease",
      file: "victim/subscription.ts",
      text: "onFailure: (error) => [{ delivery, error, fate: Broker.fateOf(error) }]",
      replacement: `onFailure: (error) => [{ delivery, error, fate: "lost" }]`
    }
  ),
  ...[
    (failure: string) => `an ack ${failure} is settled in the end, without a second run`,
    (failure: string) => `a dead letter's copy ${failure} is stored in the end, and until then its original stays`,
    (failure: string) => `a publish ${failure} ends, and is reported as failed unless the message is stored`
  ].flatMap((kills) =>
    failing([lostRequest, lostAnswer], kills, {
      name: "waits for an answer for ever",
      file: "victim/driver.ts",
      text: `deadlines.within(answered(operation, run), () =>`,
      replacement: `((call) => call)(answered(operation, run), () =>`
    })
  ),
  ...[
    "a dead-letter queue that is deleted is there again for the next letter",
    "a queue that is deleted between two sends is there again for the second"
  ].map((kills) => ({
    name: "makes each queue once",
    kills,
    file: "victim/FileBroker.ts",
    text: "            file.declare(message.queue)\n",
    replacement: `            const made = (driver.made ??= new Set())
            if (!made.has(message.queue)) file.declare(message.queue)
            made.add(message.queue)
`
  })),
  {
    name: "makes its queue when it subscribes, and not again",
    kills: "a queue that is deleted under its consumer is made again by it, and what comes later is handled",
    file: "victim/subscription.ts",
    text: "          file.declare(queue)\n",
    replacement: ""
  },
  {
    name: "sees only what came after it",
    kills: "what was in a queue before its first consumer has all its attempts",
    file: "victim/subscription.ts",
    text: "return file.receive(wanted)",
    replacement: "return file.receive(wanted).filter(({ published }) => published >= (process.begun ??= now()))"
  },
  {
    name: "does not look at the kind of a queue",
    kills: "a queue of another kind is refused with a remedy, and keeps its messages; or they have all their attempts",
    file: "victim/subscription.ts",
    text: "if (limit !== undefined)",
    replacement: "if (limit === undefined && queue === undefined)"
  },
  {
    name: "never syncs",
    kills: "messages that were confirmed before a power cut are delivered after it, as they were sent",
    file: "victim/file.ts",
    text: "PRAGMA synchronous = FULL",
    replacement: "PRAGMA synchronous = OFF"
  },
  ...[
    "messages that were confirmed before a crash are delivered after it, as they were sent",
    "of sends that a crash interrupts, the confirmed ones are not lost",
    "of sends that a power cut interrupts, the confirmed ones are not lost"
  ].map((kills) => ({
    name: "confirms a send before it is stored",
    kills,
    file: "victim/FileBroker.ts",
    text: "const publish = (messages: ReadonlyArray<Outgoing.Outgoing>) =>\n",
    replacement: `const publish = (messages) => Effect.asVoid(Effect.forkDetach(Effect.delay(store(messages), 5)))
    const store = (messages) =>\n`
  })),
  ...["a crash", "a power cut"].flatMap((fault) => [
    {
      name: "removes what it delivers",
      kills: `${fault} loses no message that was not settled, and may repeat one that was`,
      file: "victim/subscription.ts",
      text: "return Effect.sync(() => onDelivery(delivery))",
      replacement: `return Effect.andThen(Effect.ignore(driver.call("settle", (file) => file.ack(heldOf(receipt)))),
          Effect.sync(() => onDelivery(delivery)))`
    },
    {
      name: "removes a message before its dead letter is stored",
      kills: `${fault} loses no message on its way to the dead letters`,
      file: "victim/subscription.ts",
      text: "Effect.andThen(stored(copy), Effect.ignore(remove))",
      replacement: "Effect.andThen(Effect.ignore(remove), Effect.delay(stored(copy), 1))"
    }
  ]),
  ...[
    "the delay of a send survives a crash",
    "the delay of a send survives a power cut",
    "the delay of a retry survives a crash, with its attempts"
  ].map((kills) => ({
    name: "keeps delayed messages in its memory",
    kills,
    file: "victim/FileBroker.ts",
    text: "const publish = (messages: ReadonlyArray<Outgoing.Outgoing>) =>\n",
    replacement: `const publish = (messages) =>
      messages.some(({ delay }) => delay === 0) ? store(messages)
        : Effect.asVoid(Effect.forkDetach(Effect.delay(store(messages), messages[0].delay)))
    const store = (messages) =>\n`
  }))
]
