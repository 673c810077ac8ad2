// app/mcp/route.js
import { createHandler } from 'hikidashi/server'
import { catalog } from './catalog.mjs'

export const runtime = 'nodejs'
const handler = await createHandler(catalog, { name: 'manual', version: '1.0.0', principals: 'given' })
/** Returns the principal of a request, as the application knows it: here by a single key. */
const principalOf = (request) =>
  request.headers.get('authorization') === `Bearer ${process.env.MCP_KEY}`
    ? { id: 'ada', roles: ['writer'] }
    : undefined
const serve = (request) => handler.fetch(request, { principal: principalOf(request) })

export { serve as DELETE, serve as GET, serve as POST }
