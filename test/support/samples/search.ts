/** Nothing feeds the index, so nothing completes. */
export const isEmpty = true
