/** The few functions of pi's terminal library that are used; pi gives extensions its own copy. */
declare module "@earendil-works/pi-tui" {
  /** The name of a key, such as `up` or `shift+a`; nothing for input that is no key. */
  export function parseKey(data: string): string | undefined;
  /** The character that a terminal sent in the newer protocol. */
  export function decodeKittyPrintable(data: string): string | undefined;
  export function isKeyRelease(data: string): boolean;
  export function truncateToWidth(text: string, width: number, ellipsis?: string): string;
  /** Kinds of components. */
  interface Kind {
    prototype: { render(width: number): string[] };
  }
  export const Text: Kind;
  export const TruncatedText: Kind;
  export const Markdown: Kind;
}
