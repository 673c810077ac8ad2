export { createPage, type Page, type PageAnswer, type PageOptions } from './page.ts'
export { createGuardedPage, type GuardedPage, type GuardOptions } from './session.ts'
