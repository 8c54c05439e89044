export * as NsqOptions from "./NsqOptions.ts"
