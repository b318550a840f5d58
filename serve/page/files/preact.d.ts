export * from "preact"
