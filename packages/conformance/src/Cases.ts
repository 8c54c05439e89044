/** The cases of the suite. */
import type { Case } from "./Case.ts"
import { cases as adoption } from "./cases/adoption.ts"
import { cases as admin } from "./cases/admin.ts"
import { cases as backlog } from "./cases/backlog.ts"
import { cases as backoff } from "./cases/backoff.ts"
import { cases as batching } from "./cases/batching.ts"
import { cases as books } from "./cases/books.ts"
import { cases as browsedRemovals } from "./cases/browsedRemovals.ts"
import { cases as browsing } from "./cases/browsing.ts"
import { cases as calls } from "./cases/calls.ts"
import { cases as causes } from "./cases/causes.ts"
import { cases as classification } from "./cases/classification.ts"
import { cases as codecs } from "./cases/codecs.ts"
import { cases as concurrency } from "./cases/concurrency.ts"
import { cases as connections } from "./cases/connections.ts"
import { cases as contexts } from "./cases/contexts.ts"
import { cases as deadLetters } from "./cases/deadLetters.ts"
import { cases as deliveredTwice } from "./cases/deliveredTwice.ts"
import { cases as delays } from "./cases/delays.ts"
import { cases as delivery } from "./cases/delivery.ts"
import { cases as durability } from "./cases/durability.ts"
import { cases as failing } from "./cases/failing.ts"
import { cases as failingCalls } from "./cases/failingCalls.ts"
import { cases as fates } from "./cases/fates.ts"
import { cases as fairShares } from "./cases/fairShares.ts"
import { cases as foreign } from "./cases/foreign.ts"
import { cases as givingBack } from "./cases/givingBack.ts"
import { cases as guards } from "./cases/guards.ts"
import { cases as keyPlaces } from "./cases/keyPlaces.ts"
import { cases as keys } from "./cases/keys.ts"
import { cases as leases } from "./cases/leases.ts"
import { cases as limits } from "./cases/limits.ts"
import { cases as losses } from "./cases/losses.ts"
import { cases as operator } from "./cases/operator.ts"
import { cases as native } from "./cases/native.ts"
import { cases as precedence } from "./cases/precedence.ts"
import { cases as processes } from "./cases/processes.ts"
import { cases as rateLimits } from "./cases/rateLimits.ts"
import { cases as refusals } from "./cases/refusals.ts"
import { cases as reconnecting } from "./cases/reconnecting.ts"
import { cases as auditing } from "./cases/auditing.ts"
import { cases as parkedKeys } from "./cases/parkedKeys.ts"
import { cases as parking } from "./cases/parking.ts"
import { cases as redriving } from "./cases/redriving.ts"
import { cases as redrivingInStages } from "./cases/redrivingInStages.ts"
import { cases as removals } from "./cases/removals.ts"
import { cases as restarts } from "./cases/restarts.ts"
import { cases as routing } from "./cases/routing.ts"
import { cases as sending } from "./cases/sending.ts"
import { cases as settledOnce } from "./cases/settledOnce.ts"
import { cases as settling } from "./cases/settling.ts"
import { cases as shareLimits } from "./cases/shareLimits.ts"
import { cases as shutdown } from "./cases/shutdown.ts"
import { cases as time } from "./cases/time.ts"
import { cases as topologyLost } from "./cases/topologyLost.ts"
import { cases as troubles } from "./cases/troubles.ts"
import { cases as transactedBatches } from "./cases/transactedBatches.ts"
import { cases as inbox } from "./cases/inbox.ts"
import { cases as relay } from "./cases/relay.ts"
import { cases as transactions } from "./cases/transactions.ts"
import { cases as truths } from "./cases/truths.ts"

/** All cases, by group, in the order in which they run. */
export const cases: ReadonlyArray<Case> = [
  ...delivery,
  ...codecs,
  ...contexts,
  ...foreign,
  ...native,
  ...sending,
  ...batching,
  ...concurrency,
  ...precedence,
  ...calls,
  ...failing,
  ...limits,
  ...delays,
  ...classification,
  ...routing,
  ...deadLetters,
  ...causes,
  ...redriving,
  ...auditing,
  ...parking,
  ...guards,
  ...redrivingInStages,
  ...backoff,
  ...rateLimits,
  ...time,
  ...operator,
  ...troubles,
  ...shutdown,
  ...givingBack,
  ...settling,
  ...settledOnce,
  ...deliveredTwice,
  ...refusals,
  ...fates,
  ...connections,
  ...reconnecting,
  ...losses,
  ...leases,
  ...processes,
  ...transactions,
  ...transactedBatches,
  ...inbox,
  ...relay,
  ...keys,
  ...keyPlaces,
  ...parkedKeys,
  ...fairShares,
  ...shareLimits,
  ...failingCalls,
  ...removals,
  ...truths,
  ...topologyLost,
  ...adoption,
  ...restarts,
  ...durability,
  ...admin,
  ...browsing,
  ...browsedRemovals,
  ...backlog,
  ...books
]
