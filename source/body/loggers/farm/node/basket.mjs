export const articles = [
  "tea"
  "milk"
]
