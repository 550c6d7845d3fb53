/** The functions of pi's terminal library that are used; pi provides its own copy to extensions. */
declare module "@earendil-works/pi-tui" {
  /** Returns the name of a key, such as `up` or `shift+a`; undefined for input that is not a key. */
  export function parseKey(data: string): string | undefined;
  /** Returns the character that a terminal sent in the Kitty keyboard protocol. */
  export function decodeKittyPrintable(data: string): string | undefined;
  export function isKeyRelease(data: string): boolean;
  export function truncateToWidth(text: string, width: number, ellipsis?: string): string;
  /** The class of a component, as far as it is used. */
  interface Kind {
    prototype: { render(width: number): string[] };
  }
  export const Text: Kind;
  export const TruncatedText: Kind;
  export const Markdown: Kind;
}
