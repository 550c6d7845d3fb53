// Package wit_types has the types of the component model that Go does not have.
package wit_types

// The tags of an option and of a result.
const (
	OptionNone = 0
	OptionSome = 1
	ResultOk   = 0
	ResultErr  = 1
)

// Option is a value or none, which is its zero value.
type Option[T any] struct {
	some  bool
	value T
}

// None returns an option without a value.
func None[T any]() Option[T] { return Option[T]{} }

// Some returns an option with a value.
func Some[T any](value T) Option[T] { return Option[T]{true, value} }

// Tag returns OptionNone or OptionSome.
func (option Option[T]) Tag() uint8 {
	if option.some {
		return OptionSome
	}
	return OptionNone
}

// Some returns the value. It panics without one.
func (option Option[T]) Some() T {
	if !option.some {
		panic("the option has no value")
	}
	return option.value
}

// SomeOr returns the value, or the given one.
func (option Option[T]) SomeOr(value T) T {
	if option.some {
		return option.value
	}
	return value
}

// Result is a value or an error.
type Result[T, E any] struct {
	failed bool
	value  T
	err    E
}

// Ok returns a result with a value.
func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{value: value} }

// Err returns a result with an error.
func Err[T, E any](err E) Result[T, E] { return Result[T, E]{failed: true, err: err} }

// Tag returns ResultOk or ResultErr.
func (result Result[T, E]) Tag() uint8 {
	if result.failed {
		return ResultErr
	}
	return ResultOk
}

// Ok returns the value. It panics on an error.
func (result Result[T, E]) Ok() T {
	if result.failed {
		panic("the result is an error")
	}
	return result.value
}

// Err returns the error. It panics without one.
func (result Result[T, E]) Err() E {
	if !result.failed {
		panic("the result is no error")
	}
	return result.err
}

// Unit is the type without values.
type Unit struct{}

// Tuple2 is a pair.
type Tuple2[A, B any] struct {
	F0 A
	F1 B
}
