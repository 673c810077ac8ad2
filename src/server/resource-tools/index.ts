import type { Tool } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import { browseTool, listTool } from './list.ts'
import { readTool } from './read.ts'
import { searchTool } from './search.ts'

export { connectorTools } from './connector.ts'

/**
 * Returns tools for reading, for hosts without resources. They use the same view, so the same access rules apply. They hold no
 * state between requests.
 */
export function resourceTools(view: View): readonly Tool[] {
  return [listTool(view), browseTool(view), readTool(view), searchTool(view)]
}
