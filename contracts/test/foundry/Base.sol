// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// @notice The cheat codes of Foundry that the tests use.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    function addr(uint256 key) external pure returns (address);
    function deal(address to, uint256 amount) external;
    function expectRevert(bytes calldata reason) external;
    function expectRevert() external;
    function getRecordedLogs() external returns (Log[] memory);
    function prank(address sender) external;
    function recordLogs() external;
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function warp(uint256 time) external;
}

/// @notice Helpers shared by the tests.
abstract contract Base {
    Vm internal constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    bytes32 internal constant TRANSFER_TYPE = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    uint256 internal constant PAYER_KEY = 0xA11CE;
    address internal constant MERCHANT = address(0xBEEF);

    function eq(uint256 got, uint256 want, string memory what) internal pure {
        require(got == want, what);
    }

    function within(uint256 value, uint256 low, uint256 high) internal pure returns (uint256) {
        return low + value % (high - low + 1);
    }

    function signTransfer(bytes32 separator, uint256 key, address from, address to, uint256 value, uint256 validBefore, bytes32 nonce)
        internal
        pure
        returns (uint8 v, bytes32 r, bytes32 s)
    {
        bytes32 hash = keccak256(abi.encode(TRANSFER_TYPE, from, to, value, uint256(0), validBefore, nonce));
        return vm.sign(key, keccak256(abi.encodePacked(hex"1901", separator, hash)));
    }
}

/// @notice A token that moves another amount than requested.
contract OddToken {
    mapping(address holder => uint256) public balanceOf;
    mapping(address holder => mapping(address spender => uint256)) public allowance;
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    /// @notice What the receiver gets: value * numerator / denominator + extra, or 0 if it shrinks.
    uint256 public numerator = 1;
    uint256 public denominator = 1;
    int256 public extra;
    bool public burns;
    bool public refuses;

    bytes32 public constant DOMAIN_SEPARATOR = bytes32(uint256(1));

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
    }

    function set(uint256 numerator_, uint256 denominator_, int256 extra_) external {
        (numerator, denominator, extra) = (numerator_, denominator_, extra_);
    }

    function burnGas(bool on) external {
        burns = on;
    }

    function refuse(bool on) external {
        refuses = on;
    }

    function isBlacklisted(address) external pure returns (bool) {
        return false;
    }

    function paused() external pure returns (bool) {
        return false;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        return _move(msg.sender, to, value);
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        allowance[from][msg.sender] -= value;
        return _move(from, to, value);
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256,
        uint256,
        bytes32,
        uint8,
        bytes32,
        bytes32
    ) external {
        _move(from, to, value);
    }

    function transferWithAuthorization(address from, address to, uint256 value, uint256, uint256, bytes32, bytes calldata) external {
        _move(from, to, value);
    }

    function _move(address from, address to, uint256 value) private returns (bool) {
        if (burns) {
            assembly {
                invalid()
            }
        }
        if (refuses) return false;
        uint256 moved = value * numerator / denominator;
        balanceOf[from] -= moved;
        balanceOf[to] = uint256(int256(balanceOf[to] + moved) + extra);
        return true;
    }
}
