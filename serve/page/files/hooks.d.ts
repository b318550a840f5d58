export * from "preact/hooks"
