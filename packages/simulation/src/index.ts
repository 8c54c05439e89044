/**
 * Deterministic simulation: Requeue's core in worlds that are each made from one seed, with brokers, processes, faults and
 * operators, and a checker that reads everything that happened.
 */
export * as Campaign from "./Campaign.ts"
export * as Checked from "./Checked.ts"
export * as Checker from "./check/Checker.ts"
export * as Coverage from "./Coverage.ts"
export * as Generate from "./Generate.ts"
export * as History from "./History.ts"
export * as Scenario from "./Scenario.ts"
export * as Shrink from "./Shrink.ts"
export * as Simulation from "./Simulation.ts"
export * as Table from "./Table.ts"
export * as Trial from "./Trial.ts"
