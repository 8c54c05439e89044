export * as AcmeBroker from "./AcmeBroker.ts"
export * as AcmeOptions from "./AcmeOptions.ts"
export * as AcmePlan from "./AcmePlan.ts"
export { adapter } from "./AcmeBroker.ts"
