/**
 * The seed of all property tests, for vitest's setup: the same in each run of `npm test`, so that a red run is the fault of a change.
 * `npm run test:deep` draws new ones, which each failure prints; `REQUEUE_SEED` sets one.
 */
import { configureGlobal } from "fast-check"

if (process.env.REQUEUE_SEED !== "random") configureGlobal({ seed: Number(process.env.REQUEUE_SEED ?? 20_261_129) })
