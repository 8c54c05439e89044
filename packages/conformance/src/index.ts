/**
 * The conformance suite of Requeue: cases that every broker adapter must pass, on any test runner, and broken brokers that
 * the cases must find.
 */
export * as Books from "./Books.ts"
export * as Case from "./Case.ts"
export * as Cases from "./Cases.ts"
export * as Check from "./Check.ts"
export * as Control from "./Control.ts"
export * as Harness from "./Harness.ts"
export * as Lab from "./Lab.ts"
export * as Lateness from "./Lateness.ts"
export * as Ledger from "./Ledger.ts"
export * as Measured from "./Measured.ts"
export * as Mutant from "./Mutant.ts"
export * as Mutants from "./Mutants.ts"
export * as Needs from "./Needs.ts"
export * as Port from "./Port.ts"
export * as Recording from "./Recording.ts"
export * as Subject from "./Subject.ts"
export * as Suite from "./Suite.ts"
export * as VirtualTime from "./VirtualTime.ts"
export * as Wait from "./Wait.ts"
export * as Workload from "./Workload.ts"
