/** Defects that the adapter once had, planted again. */
import type { Mutant } from "@requeue/conformance"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "knows a returned message by the id that its producer chose",
    kills: "equal messages that are all returned all fail",
    file: "publish/confirms.ts",
    text: "if (mayBe(one.publication, message)) one.isReturned = true",
    replacement:
      'if (one.publication.options["messageId"] === message.properties.messageId) { one.isReturned = true; break }'
  },
  {
    name: "takes a delay for served although a policy has ended it",
    kills: "a delay that a policy of the server ends early is waited for",
    file: "consume/toDelivery.ts",
    text: "return expired.length > 0 && !expired.some(({ queue }) => early?.has(String(queue)) === true)",
    replacement: "return expired.length > 0"
  },
  {
    name: "knows the delay queues of its own plan alone",
    kills: "a delay of a former version that a policy of the server ends early is waited for",
    file: "inspect/policies.ts",
    text: "for (const name of shortened(all)) early.add(name)",
    replacement: "void shortened"
  },
  {
    name: "does not compare headers with the largest frame",
    kills: "headers that are larger than a frame fail their own message only",
    file: "publish/writer.ts",
    text: "if (size > frameMax) throw new RangeError(tooLarge(size, frameMax))",
    replacement: "if (size > frameMax) return"
  },
  {
    name: "keeps no channel for declarations",
    kills: "a consumer without a channel names the limit, and declarations go on",
    file: "connect/consumerChannels.ts",
    text: "consumers >= channelMax - 1",
    replacement: "consumers > channelMax"
  },
  {
    name: "does not look for deleted objects while it consumes",
    kills: "retries go on after the exchange of delayed messages was deleted",
    file: "consume/sessions.ts",
    text: "yield* Effect.forkScoped(Effect.forever(Effect.andThen(refreshPause, refreshed)))",
    replacement: "void refreshed"
  },
  {
    name: "copies a returned message once, and then delivers it without a count",
    kills: "a returned message keeps its attempts although the copy that counts them was lost with its connection",
    file: "consume/subscribe.ts",
    text: "Sessions.foundOut(copied)",
    replacement: "copied"
  },
  {
    name: "takes the returns of a name that it knows for those of another message",
    kills: "a returned message keeps its attempts in a process that has settled it before",
    file: "consume/subscribe.ts",
    text: "native: delivery.native, redelivered: false",
    replacement: "native: delivery.native, redelivered: false, attempts: delivery.attempts - formerReturns"
  },
  {
    name: "delivers a returned message although the copy that counts it was settled",
    kills:
      "a returned message is not delivered again once the copy that counts it was settled, though that copy's confirmation is late",
    file: "consume/subscribe.ts",
    text: "replacer(env, names, queue, deliver)",
    replacement: "replacer(env, names, queue, options.onDelivery)"
  }
]
